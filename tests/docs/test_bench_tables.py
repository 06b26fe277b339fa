"""Tables in pages are those that the benchmark's numbers make."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def make_tables():
    spec = importlib.util.spec_from_file_location("make_tables", DOCS / "make_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_about_rows_on_dask_is_that_of_the_benchmark(make_tables):
    text = make_tables.scale_page()
    assert (DOCS / "scale.md").read_text(encoding="utf-8") == text, "run docs/make_tables.py"
    assert "10,000,000" in text.split("scale:start")[1].split("scale:end")[0]


def test_tables_about_adapted_embeddings_are_those_of_the_benchmark(make_tables):
    for path, text in make_tables.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"run docs/make_tables.py: {path.name} is not up to date"
        assert "EmbeddingAdapter" in text.split("adapting:start")[1].split("adapting:end")[0]


def test_tables_of_the_whole_run_are_those_in_the_pages(make_tables):
    for path, text in make_tables.bench_pages().items():
        assert path.read_text(encoding="utf-8") == text, f"run docs/make_tables.py: {path.name} is not up to date"
    shown = {path.name for path in make_tables.bench_pages()}
    assert shown == {*make_tables.SHOWN.values(), "comparison.md", "losses.md", "README.md"}


def test_the_table_of_accuracy_says_who_is_ahead_and_what_was_run(make_tables):
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    head = page.split("accuracy:start -->\n")[1].splitlines()[0]
    assert "| LDA |" in head and "| mahalo |" in head
    mean = make_tables.read_numbers("accuracy")["mean_error"]
    assert f"{min(mean, key=mean.get)} has the smallest mean error here" in " ".join(page.split())


def accuracy_numbers(lda, ours, **more):
    errors = {"iris": {"LDA": [lda], "mahalo": [ours]}, "wine": {"LDA": [0.3], "mahalo": [0.2]}}
    return {
        "errors": errors,
        "mean_error": {"Euclidean": 0.4, "LDA": (lda + 0.3) / 2, "mahalo": (ours + 0.2) / 2},
        "mean_rank": {"Euclidean": 3.0, "LDA": 1.75, "mahalo": 1.25},
    } | more


def test_notes_on_accuracy_follow_the_record(make_tables):
    def notes(numbers):
        return " ".join(make_tables.accuracy_notes(numbers).split())

    old = notes(accuracy_numbers(0.1, 0.6))
    assert "LDA has the smallest mean error here. LDA is ahead of mahalo on 1 of 2 tables: iris. On splits" in old
    assert old.startswith('The last column is an earlier default, `MetricLearnerCV(kernel="linear", features=None')
    spaces = {"iris": {"LDA": 1, "rbf": 3}, "wine": {"local": 4}}
    new = notes(accuracy_numbers(0.1, 0.05, learner="MetricLearnerCV()", spaces=spaces))
    assert new.startswith("The last column is `MetricLearnerCV()`. mahalo has the smallest mean error here. LDA is")
    assert "on 0 of 2 tables. Spaces that were chosen: iris rbf (3 ×), LDA (1 ×); wine local (4 ×). On splits" in new
    second = json.loads(make_tables.SECOND_SEED.read_text(encoding="utf-8"))["benchmarks"][0]["numbers"]
    error, rank = second["mean_error"]["mahalo"], second["mean_rank"]["mahalo"]
    figures = f"mahalo {error:.3f} ({rank:.2f})".replace(" 0.", " .")
    assert "drawn anew (`--seed 1`)" in new and figures in old and figures in new


def test_readme_says_what_the_default_reaches(make_tables):
    table = make_tables.accuracy_headline(accuracy_numbers(0.1, 0.05, learner="MetricLearnerCV()"))
    assert table.splitlines() == [
        "| 10-NN over 2 tables | Euclidean | LDA | **mahalo** |",
        "| --- | --- | --- | --- |",
        "| mean error | .400 | .200 | .125 |",
        "| mean rank | 3.00 | 1.75 | 1.25 |",
        "",
        "mahalo is `MetricLearnerCV()`.",
    ]


def test_a_page_without_marks_is_refused(make_tables):
    with pytest.raises(ValueError, match="must have <!-- bench:start -->"):
        make_tables._replaced("no table here", "| |", "bench")


def test_what_is_a_bound_or_undecided_says_so(make_tables):
    check = {"name": "faster", "value": 283.7, "required": 300.0, "at_least": True}
    assert make_tables._times(check | {"is_bound": True}) == "more than 283 times"
    assert make_tables._times(check | {"is_bound": False}) == "283 times"
    reports = {status: {"checks": [check | {"status": status}]} for status in ("PASS", "FAIL", "OPEN")}
    *_, passed, failed, open_, everything = make_tables.verdicts(reports).splitlines()
    assert passed == "| PASS | 1 |  |  |" and everything == "| all | 1 |  |  |"
    assert failed == "| FAIL | 0 | faster: 283.7, ≥ 300 wanted |  |"
    assert open_ == "| OPEN | 0 |  | faster: 283.7, ≥ 300 wanted |"
