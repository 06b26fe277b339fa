"""Documentation that fails when it falls behind: code runs, commands exist, names are listed, figures are drawn."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import mahalo
from experiments import EXPERIMENTS
from mahalo import MetricLearner
from mahalo.cli.app import app, main
from mahalo.report import evaluation, figures

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def run_python(*arguments, cwd: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error::FutureWarning"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


# -- pages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_in_pages_runs(page, tmp_path, monkeypatch):
    """The blocks of a page are one program, read from top to bottom."""
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for k, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {k + 1}", "exec"), namespace)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh")], ids=lambda p: p.name)
def test_commands_in_pages_exist(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    commands = {info.name or info.callback.__name__ for info in app.registered_commands if not info.hidden}
    for line in "\n".join(blocks(page, "sh")).splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "make":
            assert words[1] in targets, line
        elif words[0] == "mahalo":
            assert words[1] in commands or words[1] == "--version", line
        elif words[:3] == ["python", "-m", "experiments"]:
            named = list(itertools.takewhile(lambda word: not word.startswith("-"), words[3:]))
            assert named and set(named) <= {*EXPERIMENTS, "all"}, line
        else:
            assert words[0] in {"pip", "python3"} or words[0].endswith("/bin/pip"), line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_public_name_is_documented():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [name for name in mahalo.__all__ if f"`mahalo.{name}`" not in text]
    assert not missing


@pytest.mark.parametrize("kind", [mahalo.Constraints, mahalo.Metric])
def test_public_members_are_documented(kind):
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    internal = {"take", "check_rows", "edges", "meaningful", "posed", "of_data", "coordinates", "rotation", "root", "F"}
    members = [name for name in vars(kind) if not name.startswith("_") and name not in internal]
    missing = [name for name in members if not re.search(rf"`[^`]*\b{name}\b", text)]
    assert not missing


def test_parameters_of_the_learner_are_documented():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [name for name in mahalo.MetricLearnerCV().get_params() if f"`{name}" not in text]
    assert not missing


# -- examples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(script, tmp_path):
    done = run_python(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Warning" not in done.stderr


# -- the command line ----------------------------------------------------------------------------------------


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
        (("demo", "--out", "a-file"), 1, "a-file"),
        (("reproduce", "text", "--quick"), 1, "python -m experiments"),
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
        figures.spectrum(MetricLearner().fit(*load_wine(return_X_y=True)))


def test_import_brings_no_edges(tmp_path):
    """`import mahalo` loads neither the command line nor anything that prints or draws (unless scikit-learn does)."""
    code = (
        "import sys, sklearn.neighbors; before = set(sys.modules); import mahalo; "
        "edges = {'mahalo.cli', 'mahalo.report', 'typer', 'rich', 'matplotlib'}; "
        "print(sorted(edges & (set(sys.modules) - before)))"
    )
    done = run_python("-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_library_knows_nothing_of_what_is_run_from_a_checkout():
    importing = re.compile(r"^\s*(from|import) (experiments|benchmarks)\b", flags=re.M)
    found = [path for path in (ROOT / "src").rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert not found


def test_figures_leave_pyplot_alone(tmp_path):
    code = "import sys, mahalo.report.figures; print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    assert run_python("-c", code, cwd=tmp_path).stdout.split() == ["False", "False"]


def test_demo_tells_its_story_on_wine(capsys, tmp_path, monkeypatch):
    from mahalo.cli import demo

    wine = [example for example in demo._EXAMPLES if example.name == "wine"]
    monkeypatch.setattr(demo, "_EXAMPLES", wine)
    monkeypatch.chdir(tmp_path)
    code, out, _ = run_main(capsys, "demo", "--no-plot")
    assert code == 0
    for words in ("Euclidean", "inverse covariance", "learned", "10-NN error", "pair AUC", "certificate", "γ", "time"):
        assert words in out
    assert "converged in 10 of" in " ".join(out.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_demo_saves_a_picture_for_each_data_set(tmp_path):
    done = run_python("-m", "mahalo.cli", "demo", "--out", tmp_path / "new" / "folder", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("digits", "wine"):
        picture = tmp_path / "new" / "folder" / f"demo-{name}.png"
        assert 20_000 < picture.stat().st_size < 200_000
        assert str(picture) in done.stdout


# -- figures -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    learner = MetricLearner(gamma=10.0).fit(X[train], y[train])
    Z = learner.transform(X)
    before = evaluation.view("before", X[train], y[train], X[test], y[test])
    after = evaluation.view("after", Z[train], y[train], Z[test], y[test])
    return before, after, learner


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes]


def test_view_agrees_with_plain_arithmetic(wine):
    before, _, _ = wine
    n = len(before.labels)
    distance = np.sqrt(((before.rows[:, None] - before.rows[None]) ** 2).sum(axis=2))
    same = before.labels[:, None] == before.labels[None]
    above = np.triu(np.ones((n, n), dtype=bool), 1)
    alike, unalike = distance[same & above], distance[~same & above]
    np.testing.assert_allclose(np.sort(before.alike), np.sort(alike), rtol=1e-10)
    np.testing.assert_allclose(np.sort(before.unalike), np.sort(unalike), rtol=1e-10)
    closer = (alike[:, None] < unalike[None]).mean()
    assert before.auc == pytest.approx(closer, abs=1e-12)


def test_a_view_gives_ties_to_the_nearer_neighbours():
    rows, test = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0.0], [0.1], [-0.1]])
    for labels in (["b", "b", "a", "a"], ["a", "a", "b", "b"]):
        first, other = labels[0], labels[-1]
        assert evaluation.view("", rows, labels, test, [first, first, other]).error == pytest.approx(1 / 3)


def test_learning_helps_on_wine(wine):
    before, after, _ = wine
    assert after.auc > before.auc + 0.05


def test_maps_show_every_held_out_row(wine):
    before, after, _ = wine
    figure = figures.maps(before, after)
    assert len(figure.axes) == 2
    for ax, seen in zip(figure.axes, (before, after), strict=True):
        shown = np.concatenate([points.get_offsets() for points in ax.collections])
        assert shown.shape == (len(seen.labels), 2) and np.isfinite(shown).all()
        assert f"{100 * seen.error:.1f} %" in ax.get_title(loc="left")


def test_class_names_must_match_the_classes(wine):
    before, after, _ = wine
    with pytest.raises(ValueError, match="3 classes"):
        figures.maps(before, after, class_names=["one", "two"])


def test_histograms_carry_the_auc(wine):
    before, after, _ = wine
    figure = figures.distances(before, after)
    assert titles(figure) == [f"before: pair AUC {before.auc:.3f}", f"after: pair AUC {after.auc:.3f}"]


def test_spectrum_shows_all_directions(wine):
    *_, learner = wine
    (ax,) = figures.spectrum(learner).axes
    heights = next(line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 13)
    np.testing.assert_allclose(heights, np.sort(np.linalg.eigvalsh(learner.metric_.matrix))[::-1], rtol=1e-9)
    assert ax.get_yscale() == "log"


def test_spectrum_counts_directions_that_no_constraint_sees():
    X = np.random.default_rng(0).normal(size=(10, 30))
    pairs = mahalo.Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[2, 3]])
    learner = MetricLearner().fit(X, constraints=pairs)
    (ax,) = figures.spectrum(learner).axes
    heights = next(line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 30)
    np.testing.assert_allclose(heights, np.sort(np.linalg.eigvalsh(learner.metric_.matrix))[::-1], rtol=1e-9)


def test_convergence_shows_every_step_and_the_path(wine):
    *_, learner = wine
    (ax,) = figures.convergence(learner).axes
    n_stages = len({step.gamma for step in learner.history_})
    curves = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(curves) == n_stages > 1
    drawn = np.concatenate([line.get_ydata() for line in curves])
    np.testing.assert_allclose(drawn, [step.relative_gap for step in learner.history_])
    assert ax.get_yscale() == "log"


@pytest.mark.filterwarnings("error")
def test_figures_of_a_fit_that_needed_no_step(tmp_path):
    X, y = load_wine(return_X_y=True)
    learner = MetricLearner(prior="diagonal", gamma=1e-6).fit(X, y)
    assert not learner.history_
    for draw in (figures.convergence, figures.spectrum):
        assert figures.save(draw(learner), tmp_path / "figure.png").exists()


def test_overview_has_all_panels_and_is_saved(wine, tmp_path):
    figure = figures.overview(*wine, title="wine", class_names=["a wine", "another", "a third"])
    assert [title.split(":")[0] for title in titles(figure)] == [
        "before",
        "after",
        "learned metric",
        "before",
        "after",
        "proof",
    ]
    assert figures.save(figure, tmp_path / "wine.png").stat().st_size < 200_000
    assert figures.save(figure, tmp_path / "wine.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_comparison_holds_out_every_row_once():
    X, y = load_wine(return_X_y=True)
    comparison = evaluation.compare(X, y, standardise=True)
    assert comparison.names == ("Euclidean", "inverse covariance", "learned")
    assert comparison.errors.shape == comparison.aucs.shape == (2, 3)
    assert sum(len(half[0].labels) for half in comparison.views) == len(X)
    assert len(comparison.learners) == len(comparison.seconds) == 2
