"""Notes on a fit, stored with its metric: influential constraints, and labels that look wrong.

They need the learner: a file holds neither multipliers nor the settings to judge a label by a metric learned without
it. They name rows by number, so they are read only for the training rows, and those on labels only for the training
labels; `fingerprint` recognises both.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import Constraints, as_labels
from .influence import InfluentialConstraints, most_influential
from .suspects import (
    OPPOSITE,
    DoubtfulConstraints,
    DoubtfulRows,
    FoldMetric,
    LabelJudge,
    can_be_judged,
    doubtful_constraints,
    doubtful_rows_in_sample,
)

if TYPE_CHECKING:
    from .mixin import ExplainMixin

__all__ = ["N_NOTED", "FitNotes", "fit_notes"]

N_NOTED = 50  # of each kind
_KINDS = ("similar", "dissimilar", "triplet", "quadruplet", "linear")


@dataclass(frozen=True, eq=False)
class FitNotes:
    """Checked notes: influential constraints, and doubtful rows and constraints where they were judged."""

    influential: InfluentialConstraints
    rows: DoubtfulRows | None
    constraints: DoubtfulConstraints | None

    @classmethod
    def read(cls, noted: Any, n_rows: int, classes: Sequence[object]) -> FitNotes:
        """Read the notes on a fit to `n_rows` rows of these classes; raise ValueError if they are damaged."""
        reader = _NotesReader(n_rows, {str(name): code for code, name in enumerate(classes)})
        try:
            rows, constraints = noted["doubtful_rows"], noted["doubtful_constraints"]
            return cls(
                reader.influential(noted["constraints"]),
                None if rows is None else reader.doubtful_rows(rows),
                None if constraints is None else reader.doubtful_constraints(constraints),
            )
        except (KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"the notes of this model on its fit are damaged ({why}); fit it again.") from None


def fit_notes(
    learner: ExplainMixin,
    X: Any = None,
    y: ArrayLike | None = None,
    constraints: Constraints | None = None,
    folds: Sequence[FoldMetric] = (),
) -> dict[str, Any]:
    """Return the 50 most influential constraints and the 50 most doubtful labels, as values for JSON.

    Parameters
    ----------
    learner : MetricLearner
    X, y : array-like
        Data of the fit; of many rows the labels of 10,000 are judged. Default: no labels are judged.
    constraints : Constraints, optional
        Constraints of the fit; None where pairs were drawn from the labels.
    folds : sequence of FoldMetric
        Metrics of an evaluation on held-out rows, to judge labels by; empty: fit some.

    Returns
    -------
    dict
        "constraints": numbers of all and of active ones, and the first by their share of the multipliers;
        "doubtful_rows" and "doubtful_constraints": scores of `suspects`, classes by name; None if not judged.
    """
    labels = None if y is None else as_labels(y)
    found = _influential_values(most_influential(learner.constraints_, learner.duals_, learner.values_, N_NOTED))
    notes: dict[str, Any] = {"constraints": found, "doubtful_rows": None, "doubtful_constraints": None}
    if X is None:
        return notes
    judge = LabelJudge.from_learner(learner, X, refit=constraints is None, folds=folds)
    if labels is not None and can_be_judged(labels.codes):
        notes["doubtful_rows"] = _row_values(judge, labels.codes, labels.classes)
    if constraints is not None:
        notes["doubtful_constraints"] = _constraint_values(judge, learner.constraints_)
    return notes


def _row_values(judge: LabelJudge, codes: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    found = doubtful_rows_in_sample(judge, codes, N_NOTED)
    entries = zip(found.rows.tolist(), found.score, found.suggested, found.neighbours, strict=True)
    return {
        "judged": found.n_judged,
        "held_out": found.held_out,
        "rows": [
            {"row": row, "score": _short(score), "suggested": str(classes[code]), "neighbours": near}
            for row, score, code, near in entries
        ],
    }


def _constraint_values(judge: LabelJudge, constraints: Constraints) -> list[dict[str, Any]] | None:
    if not len(constraints.pairs) + len(constraints.triplets):
        return None
    found = doubtful_constraints(judge, constraints, N_NOTED)
    entries = zip(found.which.tolist(), found.rows, found.given, found.score, strict=True)
    return [
        {"constraint": k, "rows": rows, "given": given, "score": _short(score)} for k, rows, given, score in entries
    ]


def _influential_values(found: InfluentialConstraints) -> dict[str, Any]:
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
    """Return a number of six digits."""
    return float(f"{value:.6g}")


class _NotesReader:
    """Reader of notes that checks every entry."""

    def __init__(self, n_rows: int, codes: dict[str, int]) -> None:
        self._n_rows, self._codes = n_rows, codes

    def influential(self, noted: Any) -> InfluentialConstraints:
        n, first = _count(noted["count"]), _check_list(noted["first"])
        return InfluentialConstraints(
            kinds=[_one_of(_KINDS, one["kind"]) for one in first],
            rows=[self._rows(one["rows"]) for one in first],
            bound=np.array([_number(one["bound"]) for one in first]),
            value=np.array([_number(one["value"]) for one in first]),
            share=np.array([_number(one["share"], 1.0) for one in first]),
            n_active=_count(noted["active"], n),
            n_constraints=n,
        )

    def doubtful_rows(self, noted: Any) -> DoubtfulRows:
        rows = _check_list(noted["rows"])
        return DoubtfulRows(
            rows=np.array(self._rows([one["row"] for one in rows]), dtype=np.intp),
            score=np.array([_number(one["score"], 1.0) for one in rows]),
            suggested=np.array([self._codes[_one_of(self._codes, one["suggested"])] for one in rows], dtype=np.intp),
            neighbours=[self._rows(one["neighbours"]) for one in rows],
            n_judged=_count(noted["judged"], self._n_rows),
            held_out=bool(_one_of((True, False), noted["held_out"])),
        )

    def doubtful_constraints(self, noted: Any) -> DoubtfulConstraints:
        found = _check_list(noted)
        return DoubtfulConstraints(
            which=np.array([_count(one["constraint"]) for one in found], dtype=np.intp),
            rows=[self._rows(one["rows"]) for one in found],
            given=[_one_of(OPPOSITE, one["given"]) for one in found],
            score=np.array([_number(one["score"], 1.0) for one in found]),
        )

    def _rows(self, values: object) -> list[int]:
        return [_count(row, self._n_rows - 1) for row in _check_list(values, self._n_rows)]


def _check_list(values: object, most: int = N_NOTED) -> list[Any]:
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"a list of at most {most} entries was expected")
    return values


def _count(value: object, most: float = math.inf) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} where a count or the number of a row was expected")
    return value


def _number(value: Any, most: float = math.inf) -> float:
    """Return a finite number; with `most`, one from 0 to that."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or (most < math.inf and not 0.0 <= value <= most):
        raise ValueError(f"{value!r} where a number was expected")
    return float(value)


def _one_of(allowed: Collection[Any], value: Any) -> Any:
    if not isinstance(value, (str, bool)) or value not in allowed:
        raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(map(str, allowed))}"[:200])
    return value
