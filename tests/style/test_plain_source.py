"""First words of docstrings, and private names used outside their module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mahalo

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "mahalo"
FILES = sorted(PACKAGE.rglob("*.py"))

ODD_OPENINGS = frozenset(
    re.findall(
        "[a-z]+",
        """
    about above across after against along among around as at before behind below beneath beside besides between
    beyond by down during except for from in inside into like near of off on onto out outside over past per since
    than through throughout till to toward towards under until up upon via with within without
    he her hers him his i it its me mine my our ours she that their theirs them these they this those us we you your
    what whatever when whenever where wherever whether which whichever who whoever whom whose why how
    all another any anyone anything both each either everyone everything every few many most much neither nobody none
    nothing one ones other others same several some someone something such
    also and because but else here if nor not no only or so then there though unless yet
    """,
    )
)
NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of the underscore
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def odd_openings(source: str) -> list[str]:
    """Return the first lines of docstrings that open with a preposition, pronoun, conjunction or "The same"."""
    docstrings = [ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, DEFINITIONS)]
    first_lines = [docstring.splitlines()[0] for docstring in docstrings if docstring]
    return [line for line in first_lines if _first_word(line) in ODD_OPENINGS or re.match("the same\\b", line.lower())]


def _first_word(line: str) -> str:
    found = re.match("[a-z]+", line.lower())
    return found.group() if found else ""


def private_uses(source: str) -> list[str]:
    """Return uses of private names that this module does not define: attributes and imports."""
    tree = ast.parse(source)
    own = set(_defined_names(tree)) | NAMEDTUPLE
    used = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not _is_name(node.value, "self", "cls") and node.attr not in own:
            used.append((node.lineno, node.attr))
        if isinstance(node, ast.ImportFrom):
            used += [(node.lineno, alias.name) for alias in node.names if alias.name != "_core"]
    return [f"line {line}: {name}" for line, name in used if re.match("_[^_]", name)]


def _defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and _is_name(node.value, "self", "cls"):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_name(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def test_checks_see_what_they_are_for():
    assert odd_openings('"""Of the columns, the names."""\ndef f():\n    """The same, sorted."""') == [
        "Of the columns, the names.",
        "The same, sorted.",
    ]
    assert odd_openings('"""Onset of a fit."""\nclass A:\n    """Return what is asked."""') == []
    assert private_uses("from .a import _b, c\nd._e\nd._replace(f=1)\nself._g\nd._g\nd.__class__") == [
        "line 1: _b",
        "line 2: _e",
    ]


def test_all_of_the_package_is_read():
    names = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert {"cli", "learner", "report", "solvers"} <= names
    assert len(FILES) > 100
    assert mahalo.__doc__ and not odd_openings(f'"""{mahalo.__doc__}"""')


@pytest.mark.parametrize("found", [odd_openings, private_uses])
def test_source_is_plain(found):
    problems = {str(path.relative_to(PACKAGE)): found(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: lines for path, lines in problems.items() if lines} == {}
