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
        for report in ("search", "pairs", "suspects", "accuracy"):
            assert make_tables.SHOWN[report] != path.name or f"<!-- {report}:start -->" in text
