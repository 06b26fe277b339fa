"""The documentation site: pages are listed, equations are where their table says, and it builds without warnings."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
from running import run_python

ROOT = Path(__file__).parents[2]
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "mahalo"


@pytest.fixture(scope="module")
def pages():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("pages", DOCS / "_ext" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_listed_once(pages):
    named = [name for page in pages.LISTS for name in pages.listed(DOCS / f"{page}.md")]
    assert len(named) == len(set(named))
    assert all((DOCS / f"{name}.md").exists() or name == "gallery/index" for name in named)
    everything = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    assert everything - {"index"} == (set(named) | set(pages.unlisted())) - {"gallery/index"}


def test_no_page_has_a_name_that_sphinx_writes_itself():
    """Sphinx would write its own page over ours, without a warning."""
    own = {"search", "genindex", "py-modindex", "modindex"}
    assert not [str(path) for path in DOCS.glob("*") if path.suffix in (".md", ".rst") and path.stem in own]


def test_the_home_page_opens_with_a_headline_figure_and_the_report(pages):
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    first_screen = text.split("```python")[0]
    assert "<!-- adapting:start -->\n| MAP" in first_screen
    assert "](images/report.png)" in first_screen
    assert pages.listed(DOCS / "index.md")[0] == "tutorial"


def test_the_reference_is_grouped_by_what_people_do():
    sections = re.findall(r"^## (.+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.M)
    tasks = "Learn a metric, Choose settings and compare, Constraints, Use a metric, Search, Texts, "
    tasks += (
        "Learn from searches, Classify pairs, Find duplicates, Ask people, Cluster, Learn online and ask for pairs, "
    )
    tasks += "Explain, Report and draw, "
    parts = "Losses, Features, Bases, Priors, Kernels for sets, Compatibility with metric-learn, Errors"
    assert sections == (tasks + parts).split(", ")


def test_thumbnails_stand_on_white_in_the_dark():
    css = (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
    (rule,) = re.findall(r"html\[data-theme=\"dark\"\] \.sphx-glr-thumbcontainer img \{(.*?)\}", css, flags=re.S)
    assert "background: #fff" in rule and "border: 1px" in rule


def test_examples_that_come_first_exist(pages):
    assert all((ROOT / "examples" / f"{name}.py").exists() for name in pages.FIRST)


def names_in(path: Path) -> set[str]:
    """Functions, classes and their methods; in compiled files, functions."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":
        return set(re.findall(r"^def (\w+)", text, flags=re.M))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


def test_the_table_of_equations_names_what_exists():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    places = re.findall(r"`([\w/]+\.pyx?):([\w.]+)`", text)
    assert len(places) > 40
    assert not [f"{file}:{name}" for file, name in places if name not in names_in(SOURCE / file)]
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| paper")]
    assert all(re.search(r"`[\w/]+\.pyx?:", row) for row in rows)


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    """Without running the examples, which have a test of their own."""
    pytest.importorskip("sphinx")
    ignored = shutil.ignore_patterns("gallery", "generated")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=ignored)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    options = ("-W", "--keep-going", "-q", "-D", "plot_gallery=0")
    done = run_python("-m", "sphinx", *options, "docs", "site", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
