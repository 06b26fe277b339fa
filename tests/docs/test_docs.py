"""Documentation that fails when it falls behind: code runs, commands exist, names are listed."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import runpy
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn
from reference import listed_names, public_members, thing_of
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import mahalo
from experiments import EXPERIMENTS
from mahalo.basis import BetweenBasis, Landmarks
from mahalo.cli.app import app
from mahalo.cluster import MetricKMeans
from mahalo.embeddings import EmbeddingAdapter
from mahalo.evaluation import VOTE_NOTE
from mahalo.features import Local, Quadratic
from mahalo.feedback import QueryAdapter

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


# -- pages ---------------------------------------------------------------------------------------------------


# The Python of the README is run where its output is compared with what is shown: test_readme.py.
@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "python") and p.name != "README.md"], ids=lambda p: p.name
)
def test_python_in_pages_runs(page, tmp_path, monkeypatch):
    """The blocks of a page are one program, read from top to bottom."""
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for k, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {k + 1}", "exec"), namespace)


def test_errors_of_two_spaces_on_their_page_are_those_of_a_run(capsys):
    """Two rows of 400 may differ: the last digits are the machine's."""
    page = ROOT / "docs" / "spaces.md"
    namespace: dict = {"MetricLearnerCV": mahalo.MetricLearnerCV}
    (program,) = (block for block in blocks(page, "python") if "outer" in block)
    exec(compile(program, page.name, "exec"), namespace)
    (shown,), printed = blocks(page, "text"), capsys.readouterr().out
    words, errors = zip(*(line.rsplit(" ", 1) for text in (shown, printed) for line in text.splitlines()), strict=True)
    assert words[:2] == words[2:] == ("linear: error of 11 neighbours", "rbf: error of 11 neighbours")
    np.testing.assert_allclose(*np.reshape(errors, (2, 2)).astype(float), atol=0.011)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (2, {"prior": "within", "basis": BetweenBasis(), "residual": 0.0}),
        (13, {}),
        (104, {"features": Quadratic()}),
        (65, {"features": Local()}),
        (64, {"kernel": "rbf", "kernel_params": {"width": 1.0}, "basis": Landmarks(64), "residual": 0.0}),
    ],
)
def test_columns_of_transformed_wine_are_those_that_the_page_names(columns, options):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    assert mahalo.MetricLearner(**options).fit(X, y).transform(X).shape == (178, columns)
    paragraph = (ROOT / "docs" / "spaces.md").read_text(encoding="utf-8").split("\nOn wine, ")[1].split("\n\n")[0]
    assert re.search(rf"\b{columns}\b", paragraph)


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


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent in (ROOT, ROOT / "docs")], ids=lambda p: p.name)
def test_pages_with_votes_of_neighbours_say_how_ties_are_broken(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    if page.name != "CHANGELOG.md" and re.search(r"\b\d+-NN\b", re.sub(r"!\[[^]]*\]", "", text)):
        in_words = "a tie goes to the class whose neighbours are nearer" in text and "a point or so, either way" in text
        assert in_words or VOTE_NOTE in text


# -- reference -----------------------------------------------------------------------------------------------

# Rooms that only other rooms use; what they have for everybody is in `mahalo` itself. A new room is public.
INNER = "_core callbacks cli constraints coordinates drawing errors learner linalg metric persistence progress rows"
INNER += " selection serving solvers tables task types validation version web workflows"


def test_every_public_name_is_in_the_reference():
    public = {f"mahalo.{name}" for name in mahalo.__all__}
    for room in {found.name for found in pkgutil.iter_modules(mahalo.__path__)} - set(INNER.split()):
        module = importlib.import_module(f"mahalo.{room}")
        public |= {f"mahalo.{room}.{name}" for name in module.__all__ if name not in mahalo.__all__}
    missing = sorted(public - set(listed_names()))
    assert not missing, f"add to a list of docs/api.md: {missing}"
    listed = [name.split(".")[1:] for name in listed_names() if name.count(".") == 2]
    hidden = [
        f"{room}.{name}" for room, name in listed if name not in importlib.import_module(f"mahalo.{room}").__all__
    ]
    assert not hidden, f"add to the __all__ of their rooms: {hidden}"


@pytest.mark.parametrize("name", listed_names())
def test_what_the_reference_lists_says_what_it_is_and_does(name):
    thing = thing_of(name)
    assert inspect.getdoc(thing), f"{name} has no docstring"
    for_the_library = name.split(".")[1] in ("basis", "losses", "priors")  # whose methods nobody else calls
    members = public_members(thing) if inspect.isclass(thing) and not for_the_library else []
    silent = [member for member in members if not inspect.getdoc(getattr(thing, member))]
    assert not silent, f"{name}: {silent} without docstrings"


@pytest.mark.parametrize("kind", [mahalo.Constraints, mahalo.Metric])
def test_properties_are_documented(kind):
    silent = [name for name, member in vars(kind).items() if isinstance(member, property) and not member.__doc__]
    assert not [name for name in silent if not name.startswith("_")]


@pytest.mark.parametrize(
    "kind", [mahalo.MetricLearner, mahalo.MetricLearnerCV, EmbeddingAdapter, MetricKMeans, QueryAdapter]
)
def test_parameters_of_estimators_are_documented(kind):
    inherited = "".join(inspect.getdoc(base) for base in kind.__mro__ if base.__module__.startswith("mahalo."))
    assert not [
        name for name in kind().get_params(deep=False) if not re.search(rf"^(\w+, )*{name}\b.* : ", inherited, re.M)
    ]


# -- examples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(script, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    plt.close("all")
    with sklearn.config_context(), warnings.catch_warnings(record=True) as warned:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)  # as Python does by itself
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # plt.show() where nothing is shown
        runpy.run_path(str(script), run_name="__main__")
    n_pictures = len(plt.get_fignums())
    plt.close("all")
    printed = capfd.readouterr()
    assert printed.out.strip()
    assert not [str(warning.message) for warning in warned] and "Warning" not in printed.err
    assert n_pictures or "matplotlib" not in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["string_kernel", "text_basis"])
def test_votes_of_examples_do_not_depend_on_the_numbers_of_classes(name):
    """A tie goes to the class whose neighbours are nearer: here to that of the neighbours 0 and 2."""
    accuracy = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["knn_accuracy"]
    distances = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]])
    for near, far in itertools.permutations(range(2)):
        y = np.array([near, far, near, far, 2, 2])
        assert accuracy(distances, y, np.array([near])) == 1.0


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example_has_a_title_for_the_gallery(script):
    text = script.read_text(encoding="utf-8")
    title, line, empty = ast.get_docstring(ast.parse(text)).splitlines()[:3]
    assert line == "=" * len(title) and not empty, (
        f"{script.name}: begin with a title, a line of = under it, an empty line"
    )
