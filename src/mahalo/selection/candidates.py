"""Candidates of a search: every combination of the parameters that are given as lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..task import FitSettings

__all__ = ["SEARCHED", "ProblemCandidate", "Variant", "candidate_lists", "make_problems"]

PROBLEM = ("prior", "strategy")
SEARCHED = (*PROBLEM, "n_components", "residual", "normalize")


class Variant(NamedTuple):
    """Settings that make another metric of the same solution."""

    n_components: int | None
    residual: float
    normalize: bool


@dataclass(frozen=True, eq=False)
class ProblemCandidate:
    """Problem to solve for every γ, with the variants under which its solutions are judged.

    `settings` has the least residual of all variants, all components, and no normalisation.
    """

    settings: FitSettings
    variants: tuple[Variant, ...]

    def settings_of(self, variant: Variant, gamma: float) -> FitSettings:
        """Return the settings of one candidate."""
        return replace(self.settings, **variant._asdict(), gamma=gamma)


def candidate_lists(values: Mapping[str, Any]) -> dict[str, tuple]:
    """Return the candidates of every searched parameter: those of a list, or the one value."""
    return {name: _as_candidates(values[name], name) for name in SEARCHED}


def make_problems(base: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> list[ProblemCandidate]:
    """Return every combination of the lists, simpler ones first; `base` holds all other settings."""
    variants = tuple(Variant(*values) for values in product(*(lists[name] for name in Variant._fields)))
    least: dict[str, Any] = {"n_components": None, "normalize": False, "residual": min(v.residual for v in variants)}
    problems = []
    for values in product(*(lists[name] for name in PROBLEM)):
        settings = FitSettings(**base, **dict(zip(PROBLEM, values, strict=True)), **least)
        problem = ProblemCandidate(settings, variants)
        for variant in variants:
            problem.settings_of(variant, settings.gamma)  # raises where a combination is not possible
        problems.append(problem)
    return problems


def _as_candidates(value: Any, name: str) -> tuple:
    if not isinstance(value, (list, tuple)) or (name == "prior" and _is_matrix(value)):
        return (value,)
    if not len(value):
        raise ValueError(f"{name} must hold at least one candidate; got an empty {type(value).__name__}.")
    return tuple(value)


def _is_matrix(value: Sequence[Any]) -> bool:
    """Return whether a list is a matrix, written as a list of lists of numbers."""
    return len(value) > 0 and all(isinstance(row, (list, tuple)) and np.isreal(row).all() for row in value)
