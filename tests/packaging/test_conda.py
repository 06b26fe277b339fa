"""The recipe of the conda package: what rattler-build makes of it, and what pyproject.toml says of the same things."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packaging" / "conda" / "recipe.yaml"
RECIPE = yaml.safe_load(FILE.read_text(encoding="utf-8"))
REQUIREMENTS = RECIPE["requirements"]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def plain(requirements: list[str]) -> set[str]:
    return {requirement.replace(" ", "") for requirement in requirements}


def test_version_and_description_are_those_of_the_project():
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert (RECIPE["about"]["license"], [RECIPE["about"]["license_file"]]) == (
        PROJECT["license"],
        PROJECT["license-files"],
    )


def test_requirements_are_those_of_the_project():
    run, host = plain(REQUIREMENTS["run"]), plain(REQUIREMENTS["host"])
    assert run == {"python>=${{python_min}}"} | plain(PROJECT["dependencies"])
    assert host == {"python", "pip"} | plain(PYPROJECT["build-system"]["requires"])
    assert plain(REQUIREMENTS["run_constraints"]) == plain(PROJECT["optional-dependencies"]["cli"])


def test_what_the_package_is_tried_with_exists():
    imports, program = RECIPE["tests"]
    assert all(importlib.util.find_spec(name) for name in imports["python"]["imports"])
    (file,) = program["files"]["source"]
    assert (ROOT / file).is_file() and program["script"] == f"python {file}"


@pytest.mark.slow
def test_rattler_build_renders_the_recipe_for_every_python():
    """It takes no field that it does not know."""
    rattler_build = pytest.importorskip("rattler_build")
    pythons = [name.removeprefix("cp3").removesuffix("-*") for name in PYPROJECT["tool"]["cibuildwheel"]["build"]]
    variants = {"python": [f"3.{minor}.*" for minor in pythons], "c_stdlib": ["sysroot"]}
    recipe = rattler_build.Stage0Recipe.from_file(FILE)
    rendered = recipe.render(rattler_build.VariantConfig(variants))
    assert {variant.variant["python"] for variant in rendered} == set(variants["python"])
    wanted = {"name": "mahalo", "version": PROJECT["version"]}
    assert all(variant.recipe.to_dict()["package"] == wanted for variant in rendered)
