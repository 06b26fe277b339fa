"""Tables in pages are those that the benchmark's numbers make."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_tables_about_adapted_embeddings_are_those_of_the_benchmark():
    spec = importlib.util.spec_from_file_location("make_tables", DOCS / "make_tables.py")
    make_tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_tables)
    for path, text in make_tables.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"run docs/make_tables.py: {path.name} is not up to date"
        assert "EmbeddingAdapter" in text.split("adapting:start")[1].split("adapting:end")[0]
