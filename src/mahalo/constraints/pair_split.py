"""Cross-validation splits of rows for constraints between rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

from ..types import RowsLike
from ..validation import Seed, as_generator, len_of
from .collection import Constraints


class PairSplit(BaseCrossValidator):
    """Splitter of rows, not pairs: no row is both learned from and evaluated on.

    A pair, triplet or quadruplet with rows on both sides of a split is dropped. Connected rows (the two photos of one
    person, say) therefore stay together where they form many small groups; otherwise rows are drawn one by one, and a
    `test_size` near 0.5 keeps the most pairs on both sides.

    Parameters
    ----------
    constraints : Constraints
    n_splits : int
    test_size : float
        Share of the rows to test on.
    random_state : int, Generator, RandomState or None

    Yields ``(train, test)``, positions of rows: pass ``rows=`` on with the constraints.
    """

    def __init__(self, constraints: Constraints, n_splits: int = 5, test_size: float = 0.4, random_state: Seed = None):
        if not isinstance(constraints, Constraints):
            raise ValueError(f"constraints must be a mahalo.Constraints; got {type(constraints).__name__}.")
        if n_splits < 1 or not 0 < test_size < 1:
            raise ValueError(f"n_splits must be ≥ 1 and test_size between 0 and 1; got {n_splits!r} and {test_size!r}.")
        self.constraints = constraints
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state

    # Under metadata routing, meta-estimators pass `rows` without a request.
    __metadata_request__split = {"rows": True}  # noqa: RUF012

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None, rows: ArrayLike | None = None
    ) -> int:
        return self.n_splits

    def split(
        self, X: RowsLike, y: object = None, groups: object = None, rows: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (train, test) positions; `rows` is the constraints' number of each row of X (default 0, 1, 2, …)."""
        n = len_of(X)
        rows = np.arange(n) if rows is None else np.asarray(rows)
        local, _ = self.constraints.on_rows(rows)
        group = _groups(local, n)
        rng = as_generator(self.random_state)
        n_groups = group.max(initial=-1) + 1
        for _ in range(self.n_splits):
            # Whole groups in random order until the test share is reached.
            order = rng.permutation(n_groups)
            size = np.bincount(group, minlength=n_groups)[order]
            # At least one group on either side.
            n_chosen = int((np.cumsum(size) <= max(1, round(self.test_size * n))).sum())
            test = np.isin(group, order[: min(max(1, n_chosen), n_groups - 1)])
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _groups(constraints: Constraints, n: int) -> np.ndarray:
    """Return group numbers: connected rows are one group, or each row if a group would exceed a fifth of the data."""
    linear = constraints.linear
    indices = (constraints.pairs.index, constraints.triplets.index, linear.quadruplet[linear.is_quadruplet])
    # The first row of a constraint is joined to each of its others.
    tail = np.concatenate([index[:, :1].repeat(index.shape[1] - 1, axis=1).ravel() for index in indices])
    head = np.concatenate([index[:, 1:].ravel() for index in indices])
    graph = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(n, n))
    _, group = sp.csgraph.connected_components(graph, directed=False)
    return group if np.bincount(group).max(initial=0) <= 0.2 * n else np.arange(n)
