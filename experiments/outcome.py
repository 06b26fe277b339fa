"""What an experiment is given and what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Measurement", "Outcome", "Progress", "Settings", "Verdict"]

Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total) whenever a part of the work is done."""


@dataclass(frozen=True)
class Settings:
    """How to run an experiment.

    Attributes
    ----------
    quick : bool
        About a minute, on a part of the data: enough to see that everything works.
    seed : int
        Draws splits, pairs and samples.
    cache : Path
        Directory for what is expensive and can be resumed. It need not exist yet.
    """

    quick: bool
    seed: int
    cache: Path


@dataclass(frozen=True)
class Measurement:
    """One number, with its interval.

    Attributes
    ----------
    dataset, method, measure : str
        What was measured on what; measure is "error", "accuracy", "seconds", "P@1", …
    value : float
        Mean over the repeats.
    half_width : float, optional
        Of the 95 % interval of the mean.
    n : int
        Repeats behind the mean.
    x : float, optional
        Abscissa where measurements form a curve. Beside curves, a measurement without x holds for every x.
    published : float, optional
        The figure that the paper states for it.
    """

    dataset: str
    method: str
    measure: str
    value: float
    half_width: float | None = None
    n: int = 1
    x: float | None = None
    published: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "half_width", "x", "published"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                what = f"{name} of {self.measure} of {self.method} on {self.dataset}"
                raise ValueError(f"{what} must be a finite number; got {number}.")


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in what was measured; `detail` has the numbers that decide."""

    claim: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Outcome:
    """Everything an experiment found.

    `protocol` says in a paragraph what was done, `notes` what a reader should know besides: sources of the data,
    where we differ from published figures and why. `x_label` names the abscissa of curves. `resumed`: parts were kept
    from earlier runs, so that this one was shorter.
    """

    name: str
    title: str
    protocol: str
    x_label: str | None
    measurements: tuple[Measurement, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    resumed: bool = False
