"""Candidates of a search: spaces, problems in them, and variants of their solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from ..basis import BetweenBasis, Landmarks
from ..features import Local, Quadratic
from ..task import FitSettings
from ..validation import is_rbf

SPACE = ("kernel", "kernel_params", "features", "basis")
PROBLEM = (*SPACE, "prior", "strategy")
VARIANT = ("n_components", "residual", "normalize")
SEARCHED = (*PROBLEM, *VARIANT)

_WIDEST_QUADRATIC, _WIDEST_LOCAL = 40, 20  # columns up to which these spaces are tried by default
_FEW_COLUMNS, _FACTORS = 16, 10  # columns beyond which products are formed of some principal components only
_LANDMARKS = 64
_RBF_WIDTHS = 1.0, 3.0  # gamma times the median squared distance
EXACT_ROWS = 300  # constrained rows up to which a kernel without a basis is cheap


class Variant(NamedTuple):
    """Settings that make another metric of the same solution."""

    n_components: int | None
    residual: float
    normalize: bool


@dataclass(frozen=True, eq=False)
class ProblemCandidate:
    """Problem to solve for every γ, with the variants under which its solutions are judged.

    `settings` has the least residual of all variants, all components, and no normalisation. `space` names the space:
    "unlearned", "LDA", "linear", "quadratic", "local" or a kernel. An unlearned problem has one candidate, the least γ.
    """

    space: str
    settings: FitSettings
    variants: tuple[Variant, ...]
    is_default: bool = False

    @property
    def is_unlearned(self) -> bool:
        """True if the candidate is the ordinary distance, with nothing learned."""
        return self.space == "unlearned"

    @property
    def is_costly(self) -> bool:
        """True if it is one of the default spaces that take much longer than the linear ones."""
        return self.space in ("quadratic", "local", "rbf") and self.is_default

    def settings_of(self, variant: Variant, gamma: float) -> FitSettings:
        """Return the settings of one candidate."""
        values: dict[str, Any] = dict(zip(VARIANT, variant, strict=True))
        return replace(self.settings, **values, gamma=gamma)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Candidate of a search: a problem at one γ under one variant."""

    problem: ProblemCandidate
    variant: Variant
    gamma: float

    @property
    def settings(self) -> FitSettings:
        """Settings of a fit."""
        return self.problem.settings_of(self.variant, self.gamma)

    def value(self, name: str) -> Any:
        """Return one of the searched settings."""
        return getattr(self.variant if name in VARIANT else self.problem.settings, name)


class CandidateGrid:
    """Candidates of a search: every problem under every variant at every γ, simpler ones first."""

    def __init__(self, problems: Sequence[ProblemCandidate], gammas: np.ndarray) -> None:
        self.problems = problems
        self.gammas = [gammas[:1] if problem.is_unlearned else gammas for problem in problems]
        self.candidates = [
            Candidate(problem, variant, gamma)
            for problem, values in zip(problems, self.gammas, strict=True)
            for variant in problem.variants
            for gamma in values.tolist()
        ]
        ends = np.cumsum([len(p.variants) * len(values) for p, values in zip(problems, self.gammas, strict=True)])
        self.blocks = [slice(start, end) for start, end in pairwise([0, *ends.tolist()])]  # candidates of each problem
        names = list(dict.fromkeys(problem.space for problem in problems))
        ranks = [names.index(problem.space) for problem in problems]
        self.complexity = np.repeat(ranks, np.diff([0, *ends]))  # place of each candidate's space, simpler ones first

    def shape(self, p: int) -> tuple[int, int]:
        """Return the number of variants and of γ of a problem."""
        return len(self.problems[p].variants), len(self.gammas[p])

    def at(self, p: int, gammas: np.ndarray) -> np.ndarray:
        """Return the candidates of a problem at some γ, by position: variants × γ."""
        return self.blocks[p].start + np.arange(self.shape(p)[0])[:, None] * self.shape(p)[1] + gammas


def candidate_lists(values: Mapping[str, Any]) -> dict[str, tuple]:
    """Return the candidates of every searched parameter: those of a list, or the one value."""
    return {name: _as_candidates(values[name], name) for name in SEARCHED}


def make_problems(
    base: Mapping[str, Any], lists: Mapping[str, Sequence[Any]], space: str | None = None
) -> list[ProblemCandidate]:
    """Return every combination of the lists, simpler ones first; `base` holds all other settings.

    A space without a name is called by its features or kernel. Kernel parameters, features and bases that do not go
    with a kernel are left out of its problems.
    """
    variants = tuple(Variant(*values) for values in product(*(lists[name] for name in VARIANT)))
    least: dict[str, Any] = {"n_components": None, "normalize": False, "residual": min(v.residual for v in variants)}
    problems = []
    for values in product(*(lists[name] for name in PROBLEM)):
        chosen = dict(zip(PROBLEM, values, strict=True))
        if _is_mismatch(chosen, lists):
            continue
        settings = FitSettings(**base, **chosen, **least)
        problem = ProblemCandidate(space or _space_name(settings), settings, variants)
        for variant in variants:
            problem.settings_of(variant, settings.gamma)  # raises where a combination is not possible
        problems.append(problem)
    missing = [kernel for kernel in lists["kernel"] if all(p.settings.kernel is not kernel for p in problems)]
    if missing:
        raise ValueError(
            f"kernel={missing[0]!r} has no candidate: features are columns of the linear kernel, and kernel_params of "
            "others. Add None to the lists of features and kernel_params, or leave this kernel out."
        )
    return problems


def _is_mismatch(chosen: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether features or kernel parameters of a list belong to another kernel of the list."""
    if len(lists["kernel"]) == 1:
        return False
    linear = isinstance(chosen["kernel"], str) and chosen["kernel"] == "linear"
    return bool(chosen["kernel_params"]) if linear else chosen["features"] is not None


def _space_name(settings: FitSettings) -> str:
    if settings.features is not None:
        return type(settings.features).__name__.lower()
    return settings.kernel if isinstance(settings.kernel, str) else "kernel"


def default_spaces(
    base: Mapping[str, Any], lists: Mapping[str, Sequence[Any]], n_columns: int
) -> list[ProblemCandidate]:
    """Return the problems that are tried where the caller leaves the space open, simpler ones first.

    In this order: nothing learned; the space of LDA; linear; quadratic up to 40 columns; local up to 20; RBF over
    landmarks. `lists` holds the candidates of the linear space.
    """
    plain = {name: (lists[name][0],) for name in SEARCHED} | {"residual": (1.0,), "basis": (None,)}
    near = ("neighbors",) if "neighbors" in lists["strategy"] else lists["strategy"][:1]
    curved = plain | {"prior": ("identity",), "strategy": near, "normalize": lists["normalize"]}
    first = {"prior": ("identity",), "strategy": lists["strategy"][:1], "normalize": (False,), "n_components": (None,)}
    problems = make_problems(base, plain | first, "unlearned")
    between = {"prior": ("within",), "basis": (BetweenBasis(),), "residual": (0.0, 0.2)}
    problems += make_problems(base, plain | between | {"normalize": lists["normalize"]}, "LDA")
    problems += make_problems(base, lists, "linear")
    if n_columns <= _WIDEST_QUADRATIC:
        quadratic = Quadratic(None if n_columns <= _FEW_COLUMNS else _FACTORS)
        problems += make_problems(base, curved | {"features": (quadratic,)})
    if n_columns <= _WIDEST_LOCAL:
        problems += make_problems(base, curved | {"features": (Local(),)})
    rbf = {"kernel": ("rbf",), "kernel_params": tuple({"width": w} for w in _RBF_WIDTHS)}
    problems += make_problems(base, curved | rbf | {"basis": (Landmarks(_LANDMARKS),), "residual": (0.0,)})
    return [replace(problem, is_default=True) for problem in problems]


def with_rbf_defaults(problems: Sequence[ProblemCandidate], *, widths: bool, n_exact: int) -> list[ProblemCandidate]:
    """Return the problems, those of the kernel "rbf" with `widths` to choose among, and over landmarks if that pays.

    Landmarks take the place of an exact problem of `n_exact` rows under the prior "identity", if these are many.
    """
    found = []
    for problem in problems:
        settings, variants = problem.settings, problem.variants
        if not is_rbf(settings.kernel):
            found.append(problem)
            continue
        if n_exact > EXACT_ROWS and settings.basis is None and settings.has_identity_prior:
            settings = replace(settings, basis=Landmarks(), residual=0.0)
            variants = tuple(dict.fromkeys(Variant(v.n_components, 0.0, v.normalize) for v in variants))
        own = [replace(settings, kernel_params={"width": w}) for w in _RBF_WIDTHS] if widths else [settings]
        found += [replace(problem, settings=each, variants=variants) for each in own]
    return found


def _as_candidates(value: Any, name: str) -> tuple:
    if not isinstance(value, (list, tuple)) or (name in ("prior", "basis") and _is_matrix(value)):
        return (value,)
    if not len(value):
        raise ValueError(f"{name} must hold at least one candidate; got an empty {type(value).__name__}.")
    return tuple(value)


def _is_matrix(value: Sequence[Any]) -> bool:
    """Return whether a list is a matrix, written as a list of lists of numbers."""
    return len(value) > 0 and all(isinstance(row, (list, tuple)) and np.isreal(row).all() for row in value)
