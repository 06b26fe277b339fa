"""The command line: what it prints, what it refuses, and that nothing else needs it."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest
from running import run_python
from sklearn import datasets
from sklearn.datasets import load_wine

import mahalo
from mahalo import MetricDisplay, MetricLearner
from mahalo.cli.app import main

ROOT = Path(__file__).parents[2]


def run_main(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    out, err = capsys.readouterr()
    return stopped.value.code, out, err


def test_version_is_printed(capsys):
    assert run_main(capsys, "--version") == (0, f"mahalo {mahalo.__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("demo", "--help")])
def test_help_is_printed(capsys, arguments):
    code, out, err = run_main(capsys, *arguments)
    assert code == 0 and not err
    assert "demo" in out


@pytest.mark.parametrize(
    ("arguments", "code", "names"),
    [
        (("demo", "--sed", "1"), 2, "--sed"),
        (("demo", "--seed", "-1"), 2, "--seed"),
        (("demo", "--seed", "one"), 2, "--seed"),
        (("dmo",), 2, "dmo"),
        (("demo", "--out", "a-file"), 2, "a-file"),
        (("reproduce", "text", "--quick"), 2, "python -m experiments"),
    ],
)
def test_errors_are_one_line(capsys, tmp_path, monkeypatch, arguments, code, names):
    monkeypatch.chdir(tmp_path)
    Path("a-file").write_text("in the way")
    got, out, err = run_main(capsys, *arguments)
    assert got == code and not out
    assert err.startswith("mahalo: ") and err.count("\n") == 1
    assert names in err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_typer_or_rich_the_command_says_what_to_install(tmp_path, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from mahalo.cli import main; main(['demo'])"
    done = run_python("-c", code, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f'mahalo: the command line needs {missing}: pip install "mahalo[cli]"\n'


def test_missing_matplotlib_is_said_at_once(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run_main(capsys, "demo")
    assert code == 1 and not out
    assert "pip install 'mahalo[plots]'" in err and "--no-plot" in err and err.count("\n") == 1
    with pytest.raises(ImportError, match="pip install"):
        MetricDisplay.from_estimator(MetricLearner().fit(*load_wine(return_X_y=True)), kind="spectrum")


def test_import_brings_no_edges(tmp_path):
    """`import mahalo` loads neither the command line nor anything that prints or draws (unless scikit-learn does)."""
    code = (
        "import sys, sklearn.neighbors; before = set(sys.modules); import mahalo; "
        "edges = {'mahalo.cli', 'mahalo.report', 'typer', 'rich', 'matplotlib'}; "
        "print(sorted(edges & (set(sys.modules) - before)))"
    )
    done = run_python("-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("fit", "--help"), ("neighbors", "--help")])
def test_help_does_not_wait_for_the_library(tmp_path, arguments):
    code = (
        "import sys; from mahalo.cli import main\n"
        f"try: main({list(arguments)!r})\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = run_python("-c", code, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_names_of_the_library_are_there_all_the_same(tmp_path):
    code = (
        "import mahalo; assert set(mahalo.__all__) <= set(dir(mahalo)); "
        "print(all(getattr(mahalo, name) is not None for name in mahalo.__all__), mahalo.basis.__name__); "
        "from mahalo import *; print(MetricLearner.__name__); mahalo.nothing"
    )
    done = run_python("-c", code, cwd=tmp_path)
    assert done.stdout == "True mahalo.basis\nMetricLearner\n"
    assert "AttributeError: module 'mahalo' has no attribute 'nothing'" in done.stderr


@pytest.mark.parametrize(("typed", "completed"), [("nei", "neighbors"), ("fit --lab", "--labels")])
def test_shells_can_complete(tmp_path, monkeypatch, typed, completed):
    monkeypatch.setenv("_MAHALO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"mahalo {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    done = run_python("-m", "mahalo.cli", cwd=tmp_path)
    assert completed in done.stdout.split(), done.stderr


def test_the_library_knows_nothing_of_what_is_run_from_a_checkout():
    importing = re.compile(r"^\s*(from|import) (experiments|benchmarks)\b", flags=re.M)
    found = [path for path in (ROOT / "src").rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize(("name", "n_fits"), [("iris", 2), pytest.param("wine", 10, marks=pytest.mark.slow)])
def test_demo_tells_its_story(capsys, tmp_path, monkeypatch, name, n_fits):
    from mahalo.cli import demo

    monkeypatch.setattr(demo, "EXAMPLES", [example for example in demo.EXAMPLES if example.name == name])
    monkeypatch.chdir(tmp_path)
    code, out, _ = run_main(capsys, "demo", "--no-plot")
    assert code == 0
    for words in (
        "Euclidean",
        "LDA",
        "inverse covariance",
        "learned",
        "10-NN error",
        "AUC",
        "certificate",
        "γ",
        "time",
    ):
        assert words in out
    assert f"converged in {n_fits} of" in " ".join(out.split())
    assert not list(tmp_path.iterdir())


def test_demo_tells_machines_what_it_tells_people(capsys, tmp_path, monkeypatch):
    from mahalo.cli import demo

    monkeypatch.setattr(demo, "EXAMPLES", demo.EXAMPLES[:1])
    monkeypatch.chdir(tmp_path)
    code, out, err = run_main(capsys, "demo", "--no-plot", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    (iris,) = told["examples"]
    assert (iris["name"], iris["rows"], iris["halves"], iris["converged"]) == ("iris", 150, 2, 2)
    assert list(iris["distances"]) == ["Euclidean", "LDA", "inverse covariance", "learned"] and told["pictures"] == []
    _, printed, _ = run_main(capsys, "demo", "--no-plot")
    for found in iris["distances"].values():
        error, auc = found["10-NN error"], found["AUC"]
        assert f"{100 * error['mean']:.1f} % ± {100 * error['interval']:.1f}" in printed
        assert f"{auc['mean']:.3f} ± {auc['interval']:.3f}" in printed
    assert f"{iris['relative_gap']:.1e}" in printed


def test_demo_prints_all_tables_before_it_draws(capsys, tmp_path, monkeypatch):
    from mahalo.cli import demo

    iris = demo.EXAMPLES[0]
    again = dataclasses.replace(iris, name="again")
    monkeypatch.setattr(demo, "EXAMPLES", (iris, again))
    code, out, _ = run_main(capsys, "demo", "--out", str(tmp_path))
    assert code == 0
    places = [out.index(words) for words in ("\niris:", "\nagain:", "demo-iris.png", "demo-again.png")]
    assert places == sorted(places)


def test_the_first_table_of_the_demo_is_quick():
    """Few rows, and each of them held out once."""
    from mahalo.cli import demo

    first = demo.EXAMPLES[0]
    rows = {example.name: getattr(datasets, example.load)().data.shape[0] for example in demo.EXAMPLES}
    assert first.n_repeats == 1 and rows[first.name] == min(rows.values())


@pytest.mark.slow
def test_demo_saves_a_picture_for_each_data_set(tmp_path):
    done = run_python("-m", "mahalo.cli", "demo", "--out", tmp_path / "new" / "folder", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("iris", "wine", "digits"):
        picture = tmp_path / "new" / "folder" / f"demo-{name}.png"
        assert 20_000 < picture.stat().st_size < 200_000
        assert str(picture) in done.stdout
