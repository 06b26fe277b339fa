"""Recipes run: every index and database answers as the exact search does, in both forms."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from running import run_python

RECIPES = sorted(p for p in (Path(__file__).parents[2] / "examples" / "recipes").glob("*.py") if p.stem != "common")
PACKAGES = ("faiss", "usearch", "hnswlib", "pgserver", "psycopg", "qdrant_client", "lancedb", "sqlite_vec")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_recipe_answers_as_exact_search_does(recipe, tmp_path):
    text = recipe.read_text(encoding="utf-8")
    missing = [name for name in PACKAGES if re.search(rf"^(import|from) {name}\b", text, re.M) and not find_spec(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    if recipe.stem == "sqlite_vec_table" and not _loads_extensions():
        pytest.skip("sqlite3 of this Python loads no extensions, and pysqlite3 is not installed")
    done = run_python(recipe, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "transformed: recall" in done.stdout and "query side: recall" in done.stdout


def _loads_extensions() -> bool:
    import sqlite3

    return hasattr(sqlite3.Connection, "enable_load_extension") or find_spec("pysqlite3") is not None
