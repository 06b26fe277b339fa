"""Tables in pages are those that the benchmark's numbers make."""

from __future__ import annotations

import importlib.util
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


def test_lda_is_beside_ours_in_the_table_of_accuracy(make_tables):
    """Where LDA has the smaller mean error, the pages that send readers to it say so."""
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    head = page.split("accuracy:start -->\n")[1].splitlines()[0]
    assert "| LDA |" in head and "| mahalo |" in head
    mean = make_tables.read_numbers("accuracy")["mean_error"]
    says_so = "has the smallest mean error here" in page
    assert says_so == (mean["LDA"] == min(mean.values())), "rewrite what choosing, comparison and README say of LDA"


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
