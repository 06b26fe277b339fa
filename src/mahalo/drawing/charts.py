"""Charts of pages: the numbers that `assets/charts.js` draws as SVG."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

import numpy as np

from ..evaluation import NeighborRanks
from .histogram import PairHistogram
from .spectrum import Spectrum


@dataclass(frozen=True)
class MeasureRow:
    """A measure before and after learning, and of LDA; margins are half the widths of 95 % intervals."""

    name: str
    before: float
    after: float
    before_margin: float
    after_margin: float
    lda: float | None


@dataclass(frozen=True)
class MeasuresChart:
    """Measures, one below the other."""

    rows: tuple[MeasureRow, ...]


@dataclass(frozen=True)
class GapChart:
    """Relative gap and γ of every step of the solver (0 where there is no number), and the tolerance."""

    gap: tuple[float, ...]
    gamma: tuple[float, ...]
    tol: float


@dataclass(frozen=True)
class ScoreCurve:
    """Points (γ, mean score, half its 95 % interval) of one combination of the other settings."""

    points: tuple[tuple[float, float, float], ...]
    chosen: bool


@dataclass(frozen=True)
class ScoresChart:
    """Scores of candidates against γ; the chosen point (γ, score), and the score of the prior alone, 0 for none."""

    curves: tuple[ScoreCurve, ...]
    chosen: tuple[float, float] | None
    prior_score: float


@dataclass(frozen=True, eq=False)
class HubCurve:
    """Shares of the rows by how often they are neighbours of others; counts are the left edges of equal bins."""

    counts: np.ndarray
    share: np.ndarray


@dataclass(frozen=True)
class HubChart:
    """Distribution of neighbour counts before and after, by k nearest neighbours."""

    k: int
    before: HubCurve
    after: HubCurve


@dataclass(frozen=True, eq=False)
class MapChart:
    """Linked maps of the same rows before and after learning.

    Attributes
    ----------
    before, after : ndarray of shape (n_rows, 2)
        Coordinates within ±1.
    rows : ndarray of int
        Numbers of the rows shown.
    ids : list of str
        Names of the rows.
    codes : ndarray of int
        Class of each row, −1 for none.
    classes : list of str
    coloured : bool
        True to give every class a colour; False to colour those that are pointed at or selected, where there are many.
    notes : list of str
        Remark on each row, shown with its name.
    pairs : ndarray of shape (n_pairs, 2)
        Positions of rows that are joined by a line.
    similar : ndarray of bool
        True for each pair that is similar, False if dissimilar.
    neighbors : NeighborRanks
        Nearest rows of every row among those shown.
    """

    before: np.ndarray
    after: np.ndarray
    rows: np.ndarray
    ids: list[str]
    codes: np.ndarray
    classes: list[str]
    coloured: bool
    notes: list[str]
    pairs: np.ndarray
    similar: np.ndarray
    neighbors: NeighborRanks


ChartData: TypeAlias = MeasuresChart | GapChart | ScoresChart | HubChart | PairHistogram | Spectrum


def as_json(values: object) -> str:
    """Return JSON that is safe inside a script element; data classes become objects, arrays get four digits."""
    text = json.dumps(values, default=_encode, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    unsafe = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for character, code in unsafe.items():
        text = text.replace(character, code)
    return text.encode("utf-8", "replace").decode()


def _encode(value: object) -> object:
    if not isinstance(value, np.ndarray):
        return vars(value)
    flat = value.ravel()
    return flat.tolist() if flat.dtype.kind != "f" else [float(f"{number:.4g}") for number in flat]


def chart_assets() -> tuple[str, str]:
    """Return the style and the script that draw charts, maps and lists of neighbours on a page."""
    style, *scripts = (
        (files(__package__) / "assets" / name).read_text(encoding="utf-8")
        for name in ("charts.css", "charts.js", "maps.js", "neighbors.js")
    )
    return style, "\n".join(scripts)
