"""Notes on a fit in plain values, for the file of its metric: what shaped it, and labels that look wrong.

They are taken where the learner is at hand: a file holds neither its multipliers nor what it takes to judge a label by
a metric that has not seen it. They are about rows by number, so they are read only for the rows of the fit, and those
about labels only beside the same labels; `fingerprint` tells both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import Constraints, as_labels
from .influence import Pulls, pulls
from .suspects import (
    OPPOSITE,
    DoubtfulConstraints,
    DoubtfulRows,
    FoldMetric,
    Judged,
    can_be_judged,
    doubtful_constraints,
    doubtful_of_some,
)

__all__ = ["N_NOTED", "FitNotes", "fit_notes"]

N_NOTED = 50  # of each kind
_KINDS = ("similar", "dissimilar", "triplet", "quadruplet", "linear")


@dataclass(frozen=True, eq=False)
class FitNotes:
    """What `fit_notes` noted down, checked: constraints by pull, and whatever was judged of rows and constraints."""

    pulls: Pulls
    rows: DoubtfulRows | None
    constraints: DoubtfulConstraints | None

    @classmethod
    def read(cls, noted: Any, n_rows: int, classes: Sequence[Any]) -> FitNotes:
        """From plain values, of a fit to so many rows of these classes; ValueError where they cannot be that."""
        page = _Page(n_rows, {str(name): code for code, name in enumerate(classes)})
        try:
            rows, constraints = noted["doubtful_rows"], noted["doubtful_constraints"]
            return cls(
                page.pulls(noted["constraints"]),
                None if rows is None else page.doubtful_rows(rows),
                None if constraints is None else page.doubtful_constraints(constraints),
            )
        except (KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"the notes of this model on its fit are damaged ({why}); fit it again.") from None


def fit_notes(
    learner: Any,
    X: Any = None,
    y: Any = None,
    constraints: Constraints | None = None,
    folds: Sequence[FoldMetric] = (),
) -> dict[str, Any]:
    """The 50 constraints that pull hardest and the 50 most doubtful labels, in values that JSON knows.

    Parameters
    ----------
    learner : MetricLearner
    X, y : array-like
        What it was fitted to, as it was; of many rows the labels of 10,000 are judged. Without them nothing is.
    constraints : Constraints, optional
        Those it was given; None where pairs were drawn from the labels.
    folds : sequence of FoldMetric
        Metrics of an evaluation on held-out rows, to judge labels by; empty: learn some.

    Returns
    -------
    dict
        "constraints": how many there are and pull, and the first by "share" of all multipliers; "doubtful_rows" and
        "doubtful_constraints", None where there is nothing to judge: scores as those of `suspects`, classes by name.
    """
    labels = None if y is None else as_labels(y)
    found = _plain_pulls(pulls(learner.constraints_, learner.duals_, learner.values_, N_NOTED))
    notes: dict[str, Any] = {"constraints": found, "doubtful_rows": None, "doubtful_constraints": None}
    if X is None:
        return notes
    judged = Judged.by(learner, X, again=constraints is None, folds=folds)
    if labels is not None and can_be_judged(labels.codes):
        notes["doubtful_rows"] = _noted_rows(judged, labels.codes, labels.classes)
    if constraints is not None:
        notes["doubtful_constraints"] = _noted_constraints(judged, learner.constraints_)
    return notes


def _noted_rows(judged: Judged, codes: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    found = doubtful_of_some(judged, codes, N_NOTED)
    entries = zip(found.rows.tolist(), found.score, found.suggested, found.neighbours, strict=True)
    return {
        "judged": found.n_judged,
        "held_out": found.held_out,
        "rows": [
            {"row": row, "score": _short(score), "suggested": str(classes[code]), "neighbours": near}
            for row, score, code, near in entries
        ],
    }


def _noted_constraints(judged: Judged, constraints: Constraints) -> list[dict[str, Any]] | None:
    if not len(constraints.pairs) + len(constraints.triplets):
        return None
    found = doubtful_constraints(judged, constraints, N_NOTED)
    entries = zip(found.which.tolist(), found.rows, found.given, found.score, strict=True)
    return [
        {"constraint": k, "rows": rows, "given": given, "score": _short(score)} for k, rows, given, score in entries
    ]


def _plain_pulls(found: Pulls) -> dict[str, Any]:
    entries = zip(found.kinds, found.rows, found.bound, found.value, found.share, strict=True)
    return {
        "count": found.n_constraints,
        "active": found.n_active,
        "first": [
            {"kind": kind, "rows": rows, "bound": _short(bound), "value": _short(value), "share": _short(share)}
            for kind, rows, bound, value, share in entries
        ],
    }


def _short(value: float) -> float:
    """Six digits are more than anybody reads."""
    return float(f"{value:.6g}")


class _Page:
    """Notes on a fit to so many rows, read entry by entry."""

    def __init__(self, n_rows: int, codes: dict[str, int]) -> None:
        self._n_rows, self._codes = n_rows, codes

    def pulls(self, noted: Any) -> Pulls:
        n, first = _count(noted["count"]), _some(noted["first"])
        return Pulls(
            kinds=[_one_of(_KINDS, one["kind"]) for one in first],
            rows=[self._rows(one["rows"]) for one in first],
            bound=np.array([_number(one["bound"]) for one in first]),
            value=np.array([_number(one["value"]) for one in first]),
            share=np.array([_number(one["share"], 1.0) for one in first]),
            n_active=_count(noted["active"], n),
            n_constraints=n,
        )

    def doubtful_rows(self, noted: Any) -> DoubtfulRows:
        rows = _some(noted["rows"])
        return DoubtfulRows(
            rows=np.array(self._rows([one["row"] for one in rows]), dtype=np.intp),
            score=np.array([_number(one["score"], 1.0) for one in rows]),
            suggested=np.array([self._codes[_one_of(self._codes, one["suggested"])] for one in rows], dtype=np.intp),
            neighbours=[self._rows(one["neighbours"]) for one in rows],
            n_judged=_count(noted["judged"], self._n_rows),
            held_out=bool(_one_of((True, False), noted["held_out"])),
        )

    def doubtful_constraints(self, noted: Any) -> DoubtfulConstraints:
        found = _some(noted)
        return DoubtfulConstraints(
            which=np.array([_count(one["constraint"]) for one in found], dtype=np.intp),
            rows=[self._rows(one["rows"]) for one in found],
            given=[_one_of(OPPOSITE, one["given"]) for one in found],
            score=np.array([_number(one["score"], 1.0) for one in found]),
        )

    def _rows(self, values: Any) -> list[int]:
        return [_count(row, self._n_rows - 1) for row in _some(values, self._n_rows)]


def _some(values: Any, most: int = N_NOTED) -> list[Any]:
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"a list of at most {most} entries was expected")
    return values


def _count(value: Any, most: float = math.inf) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} where a count or the number of a row was expected")
    return value


def _number(value: Any, most: float = math.inf) -> float:
    """Finite; with `most` from 0 on."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or (most < math.inf and not 0.0 <= value <= most):
        raise ValueError(f"{value!r} where a number was expected")
    return float(value)


def _one_of(known: Any, value: Any) -> Any:
    if not isinstance(value, (str, bool)) or value not in known:
        raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(map(str, known))}"[:200])
    return value
