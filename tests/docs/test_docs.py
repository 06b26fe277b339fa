"""Documentation that fails when it falls behind: code runs, commands exist, names are listed."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from running import run_python

import mahalo
from experiments import EXPERIMENTS
from mahalo.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


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
