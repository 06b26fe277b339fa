"""What the losses are tried on: constraints of three kinds in three spaces, and the objective the SDPs need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import clone

from mahalo import Constraints, MetricLearner
from mahalo.losses import SDPFrobenius, SDPLogDet
from mahalo.task import FitData, Task, pose

from .problems import pair_problem
from .tables import Table, standardised

__all__ = ["KINDS", "SPACES", "holding_down", "laplacian", "needs_objective", "pose_table"]

# Beyond this many rows a table is sampled for the RBF kernel, where the rank is the number of rows.
KERNEL_ROWS = 80


def needs_objective(loss) -> bool:
    return isinstance(loss, (SDPFrobenius, SDPLogDet))


def laplacian(pairs: np.ndarray, n_rows: int) -> sp.csr_array:
    """C with tr(C κ) = Σ squared distances of the pairs."""
    i, j = pairs.T
    one = np.ones(len(pairs))
    entries = np.concatenate([one, one, -one, -one])
    return sp.csr_array((entries, (np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i]))), (n_rows, n_rows))


def holding_down(X: np.ndarray, y: np.ndarray, n_pairs: int = 500) -> Constraints:
    """Minimise the mean squared distance of similar pairs, and a tenth of that along a random tour of all rows.

    In units of the squared distances in X. The tour leaves no direction free, which SDPLogDet would make infinite.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(len(y), size=n_pairs)
    second = np.array([rng.choice(np.flatnonzero(y == y[i])) for i in first])
    similar = np.column_stack([first, second])[first != second]
    tour = rng.permutation(len(y))
    tour = np.column_stack([tour, np.roll(tour, 1)])
    unit = float(((X[tour[:, 0]] - X[tour[:, 1]]) ** 2).sum(axis=1).mean())
    C = laplacian(similar, len(y)) / len(similar) + 0.1 * laplacian(tour, len(y)) / len(tour)
    return Constraints.linear_objective(C / unit)


# -- constraints -------------------------------------------------------------------------------------------------------


def _pairs(X: np.ndarray, y: np.ndarray, per_class: int) -> Constraints:
    return pair_problem(X, y, pairs_per_class=per_class).constraints()


def _triplets(X: np.ndarray, y: np.ndarray, per_class: int) -> Constraints:
    """Row, row of its class, row of another; the margin is the 5th percentile of squared distances."""
    rng = np.random.default_rng(0)
    drawn = []
    for label in np.unique(y):
        inside, outside = np.flatnonzero(y == label), np.flatnonzero(y != label)
        drawn.append(
            np.column_stack(
                [rng.choice(inside, per_class), rng.choice(inside, per_class), rng.choice(outside, per_class)]
            )
        )
    triplets = np.unique(np.vstack(drawn), axis=0)
    return Constraints.from_triplets(triplets[triplets[:, 0] != triplets[:, 1]], margin=_percentile(X, 5))


def _linear(X: np.ndarray, y: np.ndarray, per_class: int) -> Constraints:
    """Groups of three rows of a class have a small spread, and their mean is far from that of three other rows."""
    rng = np.random.default_rng(0)
    near, far = _percentile(X, 5), _percentile(X, 95)
    matrices, bounds, senses = [], [], []
    for label in np.unique(y):
        inside, outside = np.flatnonzero(y == label), np.flatnonzero(y != label)
        for _ in range(per_class // 5):
            group, others = rng.choice(inside, 3, replace=False), rng.choice(outside, 3, replace=False)
            all_pairs = np.column_stack([group, np.roll(group, 1)])
            apart = np.zeros(len(y))
            apart[group], apart[others] = 1 / 3, -1 / 3
            column = sp.csr_array(apart[:, None])
            matrices += [laplacian(all_pairs, len(y)) / 3, sp.csr_array(column @ column.T)]
            bounds += [near, far / 2]
            senses += ["<=", ">="]
    return Constraints.from_linear(matrices, bounds, sense=senses)


def _percentile(X: np.ndarray, q: float) -> float:
    sq = pdist(X[:: max(1, len(X) // 500)], "sqeuclidean")
    return float(np.percentile(sq[sq > 0], q))


KINDS: dict[str, Callable[[np.ndarray, np.ndarray, int], Constraints]] = {
    "pairs": _pairs,
    "triplets": _triplets,
    "linear forms": _linear,
}


# -- spaces ------------------------------------------------------------------------------------------------------------

SPACES: dict[str, Callable[[Table], MetricLearner]] = {
    "features": lambda table: MetricLearner(),
    "RBF kernel": lambda table: MetricLearner(kernel="rbf", kernel_params={"gamma": 1 / table.X.shape[1]}),
    "basis": lambda table: MetricLearner(basis=max(2, min(table.n_classes, table.X.shape[1] // 2)), residual=True),
}


def pose_table(table: Table, kind: str, space: str, loss, per_class: int = 100, **settings) -> Task:
    """What a learner with this loss and these settings has to solve.

    Bounds are percentiles of squared distances between rows; under the kernel, of those in its feature space.
    """
    X, y = standardised(table.X), table.y
    if space == "RBF kernel":
        per_class = min(per_class, 50)
        kept = _sample(y, KERNEL_ROWS)
        X, y = X[kept], y[kept]
    learner = clone(SPACES[space](table)).set_params(loss=loss, **settings)
    in_space = _feature_space(learner, X) if space == "RBF kernel" else X
    constraints = KINDS[kind](in_space, y, per_class)
    if needs_objective(loss):
        constraints = constraints + holding_down(in_space, y)
    return pose(learner.fit_settings(), FitData(X, y, constraints, None), quiet=True)


def _feature_space(learner: MetricLearner, X: np.ndarray) -> np.ndarray:
    """Rows with the kernel's distances, for the percentiles."""
    from sklearn.metrics.pairwise import rbf_kernel

    values, vectors = np.linalg.eigh(rbf_kernel(X, **learner.kernel_params))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _sample(y: np.ndarray, n_rows: int) -> np.ndarray:
    """About `n_rows` rows, of every class its share and no fewer than four."""
    rng = np.random.default_rng(0)
    share = min(1.0, n_rows / len(y))
    members = (rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y))
    return np.sort(np.concatenate([rows[: max(4, round(share * len(rows)))] for rows in members]))
