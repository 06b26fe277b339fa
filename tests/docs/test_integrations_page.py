"""The table of other libraries is true, and what the page shows of them runs where they are installed."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@dataclass(frozen=True)
class Row:
    library: str
    tested: str
    extra: str
    tests: str


def table() -> list[Row]:
    lines = re.findall(r"^\| ([\w-]+) \| ([\w.]+) \| `mahalo\[([\w-]+)\]` \| .* \| (\S+) \|$", PAGE, flags=re.M)
    return [Row(*line) for line in lines]


every_row = pytest.mark.parametrize("row", table(), ids=lambda row: row.library)


def test_the_table_is_read():
    n_lines = len(re.findall(r"^\|.*tests/", PAGE, flags=re.M))
    assert len(table()) == n_lines >= 3


@every_row
def test_the_extra_brings_the_library_in_a_version_that_was_tested(row):
    wanted = {r.name: r.specifier for r in map(Requirement, EXTRAS[row.extra])}
    assert Version(row.tested) in wanted[row.library]


@every_row
def test_the_library_is_not_older_than_its_extra_asks_for(row):
    try:
        installed = version(row.library)
    except PackageNotFoundError:
        pytest.skip(f'{row.library} is not installed: pip install "mahalo[{row.extra}]"')
    wanted = {r.name: r.specifier for r in map(Requirement, EXTRAS[row.extra])}
    assert Version(installed) in wanted[row.library]


@every_row
def test_the_tests_use_the_library(row):
    text = (ROOT / row.tests).read_text(encoding="utf-8")
    assert re.search(rf'importorskip\("{row.library.replace("-", "[._]")}"\)', text)


@every_row
def test_a_section_tells_of_it(row):
    sections = re.findall(r"^## (.+)$", PAGE, flags=re.M)
    plain = re.sub("[^a-z0-9]", "", row.library.lower())  # llama-index-core is LlamaIndex
    assert any(re.sub("[^a-z0-9]", "", title.lower()) in plain for title in sections), sections


def sections_with_programs() -> dict[str, str]:
    """Return the programs of sections whose libraries `make test` does not install, by title."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)
    shown = {
        title: re.findall(r"^```py\n(.*?)^```", text, flags=re.M | re.S)
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {title: "\n".join(programs) for title, programs in shown.items() if programs}


@pytest.mark.parametrize("title", sections_with_programs())
def test_what_is_shown_runs(title, tmp_path, monkeypatch):
    program = sections_with_programs()[title]
    for module in re.findall(r"^(?:import|from) (\w+)", program, flags=re.M):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    first = re.search(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)[1]
    namespace: dict = {}
    exec(compile(f"{first}\n{program}", f"integrations.md, {title}", "exec"), namespace)
