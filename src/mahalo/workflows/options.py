"""Settings of a fit to the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Holdout(StrEnum):
    """Unit of held-out data: rows of all classes, or whole classes."""

    rows = "rows"
    classes = "classes"


@dataclass(frozen=True)
class LearningOptions:
    """Settings of a fit; None: chosen by cross-validation, or the default.

    Attributes
    ----------
    embeddings : bool
        Rows are vectors of an encoder.
    standardise : bool
        Columns get mean 0 and deviation 1, unless rows are embeddings or sparse.
    gamma : float, optional
        Weight of the constraints.
    prior : str, optional
        Metric to start from.
    kernel : str
        "auto" to try all spaces, or a kernel of scikit-learn.
    components : int, optional
        Number of directions of the metric.
    holdout : Holdout
        Choose and evaluate by held-out rows, or by unseen classes.
    scoring : str, optional
        Score of held-out rows to choose by: accuracy, auc, map, precision@k or recall@k.
    seed : int
        Seed of folds, and of pairs that are drawn.
    """

    embeddings: bool = False
    standardise: bool = True
    gamma: float | None = None
    prior: str | None = None
    kernel: str = "auto"
    components: int | None = None
    holdout: Holdout = Holdout.rows
    scoring: str | None = None
    seed: int = 0
