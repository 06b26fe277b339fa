"""Results as files, pages and pictures, and the command that makes them."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from experiments import EXPERIMENTS, curves, results, runner
from experiments.__main__ import main
from experiments.outcome import Measurement, Outcome, Verdict
from mahalo.drawing import save

CURVES = (
    *(
        Measurement("news", method, "accuracy", 0.1 * k + shift, half_width=0.0125, n=4, x=x)
        for shift, method in ((0.321, "LogDet"), (0.123, "LSA"))
        for k, x in enumerate((5.0, 20.0, 400.0))
    ),
    Measurement("news", "Euclidean", "accuracy", 0.456, half_width=0.007, n=4),
)
DOTS = (
    Measurement("iris", "LogDet", "error", 0.0214, half_width=0.004, n=10, published=0.031),
    Measurement("wine", "LogDet", "error", 0.0318, n=1),
    Measurement("iris", "LogDet", "seconds", 0.0517, published=0.149),
)


def record_of(measurements, name="made-up", quick=False) -> results.Record:
    outcome = Outcome(
        name=name,
        title="A made-up experiment",
        protocol="Nothing was run.",
        x_label="size k",
        measurements=tuple(measurements),
        verdicts=(Verdict("more is better", True, "+0.1"), Verdict("less is better", False, "-0.1 | so")),
        notes=("Made up [of course].",),
    )
    return results.Record(outcome, "python -m experiments made-up --seed 0", quick, 0, 75.0, {"Python": "3"})


@pytest.mark.parametrize("measurements", [CURVES, DOTS, CURVES + DOTS], ids=["curves", "dots", "both"])
def test_json_round_trip(tmp_path, measurements):
    record = record_of(measurements)
    path = results.write(record, tmp_path, picture=False)[0]
    assert results.read(path) == record
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made-up.json", "made-up.md"]


def test_the_time_of_a_resumed_run_is_not_taken_for_that_of_a_whole_one():
    whole = record_of([Measurement("a", "b", "error", 0.1)])
    resumed = dataclasses.replace(whole, outcome=dataclasses.replace(whole.outcome, resumed=True))
    assert "It took 1 min. " in results.page(whole, picture=False)
    assert "It took 1 min for what was not kept from earlier runs. " in results.page(resumed, picture=False)
    assert "| 1 min for what was not kept from earlier runs |" in results.index_page([resumed])


@pytest.mark.parametrize("damage", ["", "[]", '{"format": "mahalo-result"}', '{"format": "another"}'])
def test_other_json_is_refused(tmp_path, damage):
    (tmp_path / "made-up.json").write_text(damage)
    with pytest.raises(ValueError, match="run it again"):
        results.read(tmp_path / "made-up.json")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = results.write(record_of(CURVES), tmp_path, picture=False)[0]
    before = path.read_bytes()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        results.write(record_of(DOTS), tmp_path, picture=False)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made-up.json", "made-up.md"]


def test_page_has_every_measurement(tmp_path):
    page = results.page(record_of(CURVES + DOTS))
    for m in CURVES + DOTS:
        number = f"{m.value:.3g}" if m.measure == "seconds" else f"{m.value:.3f}"
        assert number in page and m.method in page and m.dataset in page
        if m.half_width is not None:
            assert f"{number} ± {m.half_width:.3f}" in page
    assert "| iris | LogDet | error | 0.021 ± 0.004 | 0.031 | -0.0096 |" in page
    assert "| iris | LogDet | seconds | 0.0517 | 0.149 | -0.0973 |" in page
    for words in (
        "Nothing was run.",
        "Made up",
        "python -m experiments made-up --seed 0",
        "Python 3",
        "**does not hold**",
    ):
        assert words in page
    assert "-0.1 \\| so" in page


def test_page_of_a_quick_run_says_so():
    assert "do not count" in results.page(record_of(CURVES, quick=True))
    assert "do not count" not in results.page(record_of(CURVES))


def test_index_lists_what_is_there(tmp_path):
    for name in ("text", "uci"):
        results.write(record_of(CURVES, name), tmp_path, picture=False)
    (tmp_path / "something-else.json").write_text("{}")
    index = results.write_index(tmp_path).read_text(encoding="utf-8")
    assert index.index("(uci.md)") < index.index("(text.md)") and "1 of 2" in index and "1 min" in index
    results.prepare_folder(tmp_path)  # an index of ours may be written again


def test_a_readme_that_is_not_ours_is_not_overwritten(capsys, tmp_path, made_up_experiments):
    (tmp_path / "README.md").write_text("# My project")
    code, out, err = run_main(capsys, "text", "--quick", "--out", str(tmp_path))
    assert code == 2 and not out and "README.md" in err
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]


def test_screen_has_every_measurement():
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    results.show(record_of(CURVES + DOTS), console)
    shown = console.export_text()
    for words in ("0.321 ± 0.013", "0.456 ± 0.007", "0.0517", "more is better", "does not hold", "[of course]"):
        assert words in shown


@pytest.mark.parametrize("measurements", [CURVES, DOTS, CURVES + DOTS], ids=["curves", "dots", "both"])
def test_figure_has_every_measurement(measurements, tmp_path):
    figure = curves.draw(record_of(measurements).outcome)
    drawn = np.concatenate([np.ravel(line.get_ydata(orig=False)) for ax in figure.axes for line in ax.lines])
    for m in measurements:
        assert np.isclose(drawn, m.value).any(), m
        assert m.published is None or np.isclose(drawn, m.published).any(), m
    n_panels = len({(m.dataset if m.x is not None or m.method == "Euclidean" else "", m.measure) for m in measurements})
    assert len(figure.axes) == n_panels
    labels = {text.get_text() for text in figure.legends[0].texts}
    assert {m.method for m in measurements} <= labels
    assert save(figure, tmp_path / "figure.png").stat().st_size < 200_000


def test_intervals_wider_than_the_values_do_not_flatten_them():
    wide = [Measurement("news", "LogDet", "accuracy", v, half_width=9.0, n=2, x=x) for x, v in ((1.0, 0.7), (2.0, 0.8))]
    (ax,) = curves.draw(record_of(wide).outcome).axes
    low, high = ax.get_ylim()
    assert 0.5 < low < 0.7 and 0.8 < high < 1.01


# -- the command -----------------------------------------------------------------------------------------------------


def run_main(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    out, err = capsys.readouterr()
    return stopped.value.code, out, err


@pytest.fixture
def made_up_experiments(monkeypatch):
    """`text` returns curves, `embeddings` finds no data."""

    class Text:
        @staticmethod
        def run(settings, progress):
            progress("working", 1, 2)
            progress("working", 2, 2)
            assert settings.quick and settings.seed == 4
            return record_of(CURVES, "text").outcome

    class Embeddings:
        @staticmethod
        def run(settings, progress):
            raise FileNotFoundError("the data set 'banking77' is missing. Get it.")

    modules = {"experiments.text": Text, "experiments.embeddings": Embeddings}
    monkeypatch.setattr(runner, "import_module", modules.__getitem__)


def test_a_run_prints_and_writes(capsys, tmp_path, made_up_experiments):
    code, out, err = run_main(capsys, "text", "--quick", "--seed", "4", "--out", str(tmp_path / "new"))
    assert code == 0
    assert "0.456 ± 0.007" in out and "do not count" in out and "working 2/2" in err
    assert {p.name for p in (tmp_path / "new").iterdir()} == {"text.json", "text.md", "text.png", "README.md"}
    written = json.loads((tmp_path / "new" / "text.json").read_text(encoding="utf-8"))
    assert written["command"] == "python -m experiments text --seed 4 --quick"
    assert {"Python", "mahalo", "numpy", "scipy", "scikit-learn"} <= set(written["environment"])


def test_one_missing_set_does_not_stop_the_others(capsys, tmp_path, made_up_experiments):
    names = ("embeddings", "text")
    code, out, err = run_main(capsys, *names, "--quick", "--seed", "4", "--out", str(tmp_path), "--no-plot")
    assert code == 1
    assert "banking77" in err and "0.456 ± 0.007" in out
    assert {p.name for p in tmp_path.iterdir()} == {"text.json", "text.md", "README.md"}


def test_a_missing_set_alone_is_one_line(capsys, tmp_path, made_up_experiments):
    code, out, err = run_main(capsys, "embeddings", "--out", str(tmp_path), "--no-plot")
    assert (code, out) == (2, "")
    assert err == "python -m experiments: the data set 'banking77' is missing. Get it.\n"


def test_an_unknown_experiment_is_named(capsys, tmp_path):
    code, out, err = run_main(capsys, "txt", "--out", str(tmp_path / "new"))
    assert code == 2 and not out and "txt" in err and all(name in err for name in EXPERIMENTS)
    assert not (tmp_path / "new").exists()


def test_missing_matplotlib_is_said_before_the_work(capsys, tmp_path, monkeypatch, made_up_experiments):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run_main(capsys, "text", "--out", str(tmp_path / "new"))
    assert code == 1 and not out and "mahalo[plots]" in err


def test_what_is_not_installed_is_named_with_its_remedy(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    monkeypatch.delitem(sys.modules, "experiments.text", raising=False)
    code, out, err = run_main(capsys, "text", "--out", str(tmp_path), "--no-plot")
    assert (code, out) == (1, "")
    assert err == "python -m experiments: text needs snowballstemmer: pip install 'mahalo[experiments]'\n"


def test_help_names_every_experiment(capsys):
    code, out, _ = run_main(capsys, "--help")
    assert code == 0 and all(f"{name}:" in out for name in EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder"), [("text", "classic3"), ("embeddings", "banking77")])
def test_quick_run(capsys, tmp_path, data_dir, monkeypatch, name, folder):
    if not (data_dir / folder).is_dir():
        pytest.skip(f"no {folder} in {data_dir}")
    monkeypatch.setenv("MAHALO_DATA", str(data_dir))
    code, out, _ = run_main(capsys, name, "--quick", "--out", str(tmp_path))
    assert code == 0 and "LogDet" in out
    record = results.read(tmp_path / f"{name}.json")
    assert record.quick and len(record.outcome.measurements) > 10
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


# -- what is kept in the documentation ---------------------------------------------------------------------------------

PAGES = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.json")), ids=lambda p: p.stem)
def test_pages_say_what_the_numbers_say(path):
    """A page that was edited by hand, or made by another version of the writer, is not what its JSON file says."""
    record = results.read(path)
    assert not record.quick
    assert (PAGES / f"{record.outcome.name}.png").is_file()
    assert (PAGES / f"{record.outcome.name}.md").read_text(encoding="utf-8") == results.page(record)


def test_the_index_lists_every_page():
    if not PAGES.is_dir():
        pytest.skip("no results yet")
    records = [results.read(PAGES / f"{name}.json") for name in EXPERIMENTS if (PAGES / f"{name}.json").is_file()]
    assert len(records) == len(list(PAGES.glob("*.json")))
    assert (PAGES / "README.md").read_text(encoding="utf-8") == results.index_page(records)
