"""Notes on a fit, stored with its metric: influential constraints, and labels that look wrong.

They need the learner: a file holds neither multipliers nor the settings to judge a label by a metric learned without
it. They name rows by number, so they are read only for the training rows, and those on labels only for the training
labels; `fingerprint` recognises both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import Constraints, as_labels
from ..types import RowsLike
from .influence import InfluentialConstraints, most_influential
from .json_values import Reader
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

N_NOTED = 50  # of each kind
_KINDS = ("similar", "dissimilar", "triplet", "quadruplet", "linear")


@dataclass(frozen=True, eq=False)
class FitNotes:
    """Checked notes: influential constraints, and doubtful rows and constraints where they were judged."""

    influential: InfluentialConstraints
    rows: DoubtfulRows | None
    constraints: DoubtfulConstraints | None

    @classmethod
    def read(cls, stored: object, n_rows: int, classes: Sequence[object]) -> FitNotes:
        """Read the notes on a fit to `n_rows` rows of these classes; raise ValueError if they are damaged."""
        codes = {str(name): code for code, name in enumerate(classes)}
        try:
            values = Reader(stored)
            rows, judged_constraints = values.part("doubtful_rows"), values.get("doubtful_constraints") is not None
            return cls(
                _read_influential(values.required("constraints"), n_rows),
                None if rows is None else _read_doubtful_rows(rows, n_rows, codes),
                _read_doubtful_constraints(values.required_parts("doubtful_constraints", N_NOTED), n_rows)
                if judged_constraints
                else None,
            )
        except ValueError as error:
            raise ValueError(f"the notes of this model on its fit are damaged ({error}); fit it again.") from None


def fit_notes(
    learner: ExplainMixin,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    constraints: Constraints | None = None,
    folds: Sequence[FoldMetric] = (),
) -> dict[str, object]:
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
    notes: dict[str, object] = {"constraints": found, "doubtful_rows": None, "doubtful_constraints": None}
    if X is None:
        return notes
    judge = LabelJudge.from_learner(learner, X, refit=constraints is None, folds=folds)
    if labels is not None and can_be_judged(labels.codes):
        notes["doubtful_rows"] = _row_values(judge, labels.codes, labels.classes)
    if constraints is not None:
        notes["doubtful_constraints"] = _constraint_values(judge, learner.constraints_)
    return notes


def _row_values(judge: LabelJudge, codes: np.ndarray, classes: np.ndarray) -> dict[str, object]:
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


def _constraint_values(judge: LabelJudge, constraints: Constraints) -> list[dict[str, object]] | None:
    if not len(constraints.pairs) + len(constraints.triplets):
        return None
    found = doubtful_constraints(judge, constraints, N_NOTED)
    entries = zip(found.which.tolist(), found.rows, found.given, found.score, strict=True)
    return [
        {"constraint": k, "rows": rows, "given": given, "score": _short(score)} for k, rows, given, score in entries
    ]


def _influential_values(found: InfluentialConstraints) -> dict[str, object]:
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


# -- reading ---------------------------------------------------------------------------------------------------------


def _read_influential(stored: Reader, n_rows: int) -> InfluentialConstraints:
    n, first = stored.required_count("count"), stored.required_parts("first", N_NOTED)
    return InfluentialConstraints(
        kinds=[one.one_of("kind", _KINDS) for one in first],
        rows=[one.counts("rows", n_rows - 1, n_rows) for one in first],
        bound=np.array([one.finite("bound") for one in first]),
        value=np.array([one.finite("value") for one in first]),
        share=np.array([one.share("share") for one in first]),
        n_active=stored.required_count("active", n),
        n_constraints=n,
    )


def _read_doubtful_rows(stored: Reader, n_rows: int, codes: dict[str, int]) -> DoubtfulRows:
    rows = stored.required_parts("rows", N_NOTED)
    return DoubtfulRows(
        rows=np.array([one.required_count("row", n_rows - 1) for one in rows], dtype=np.intp),
        score=np.array([one.share("score") for one in rows]),
        suggested=np.array([codes[one.one_of("suggested", codes)] for one in rows], dtype=np.intp),
        neighbours=[one.counts("neighbours", n_rows - 1, n_rows) for one in rows],
        n_judged=stored.required_count("judged", n_rows),
        held_out=stored.truth("held_out"),
    )


def _read_doubtful_constraints(stored: list[Reader], n_rows: int) -> DoubtfulConstraints:
    return DoubtfulConstraints(
        which=np.array([one.required_count("constraint") for one in stored], dtype=np.intp),
        rows=[one.counts("rows", n_rows - 1, n_rows) for one in stored],
        given=[one.one_of("given", OPPOSITE) for one in stored],
        score=np.array([one.share("score") for one in stored]),
    )
