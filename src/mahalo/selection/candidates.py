"""What there is to choose among: every combination of the parameters that are given as lists."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

__all__ = ["CHOSEN", "Choices"]

CHOSEN = ("prior", "strategy", "n_components", "residual", "normalize")


@dataclass(frozen=True)
class Choices:
    """The candidates for every parameter, simpler ones first.

    Priors and strategies make problems of their own; the number of components, the residual and the cosine are
    variants of one solution.
    """

    prior: tuple
    strategy: tuple
    n_components: tuple
    residual: tuple
    normalize: tuple

    @classmethod
    def of(cls, values: dict[str, Any]) -> Choices:
        return cls(*(_candidates(values[name], name) for name in CHOSEN))

    @property
    def problems(self) -> list[tuple[Any, str]]:
        """Every prior with every strategy."""
        return list(product(self.prior, self.strategy))

    @property
    def variants(self) -> list[tuple[int | None, float, bool]]:
        """Every number of components with every residual, by distance and by cosine."""
        return list(product(self.n_components, self.residual, self.normalize))

    @property
    def every(self) -> list[dict[str, Any]]:
        """One value of every parameter: all combinations."""
        return [
            dict(zip(CHOSEN, (*problem, *variant), strict=True))
            for problem in self.problems
            for variant in self.variants
        ]


def _candidates(value: Any, name: str) -> tuple:
    """Those of a list, or the one thing given."""
    if not isinstance(value, (list, tuple)) or (name == "prior" and _is_matrix(value)):
        return (value,)
    if not len(value):
        raise ValueError(f"{name} must hold at least one candidate; got an empty {type(value).__name__}.")
    return tuple(value)


def _is_matrix(value: Any) -> bool:
    """A matrix written as a list of lists of numbers."""
    return len(value) > 0 and all(isinstance(row, (list, tuple)) and np.isreal(row).all() for row in value)
