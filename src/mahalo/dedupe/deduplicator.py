"""Deduplicator: same or not from labelled pairs, over candidate pairs of one table or between two."""

from __future__ import annotations

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..constraints.row_names import as_same_mask
from ..validation import as_indices, check_count, warn
from .candidates import Neighborhood, sq_pair_distances
from .columns import Columns, check_tables, scaled_rows
from .groups import Duplicates, Probability, find_groups
from .logistic import PairModel, fit_falling

_EQUAL = 1e-9  # squared distance below which two values of a column are equal
_FEW = 10  # labelled pairs of either kind below which probabilities mean little


class Deduplicator(BaseEstimator):
    """Find duplicates in a table, or between two tables, from labelled pairs.

    Every column is a block of numbers: the vectors of a text, or one standardised number. Labelled pairs give each
    column a weight ≥ 0, which makes a metric, Σ w ‖x − y‖² over the columns; candidates are the nearest rows under it.
    The probability that a candidate pair is the same falls with its squared distance and with its *excess*: by how
    much nearer others its rows have. Where the labelled pairs clearly say so, equality in a column counts beside its
    distance. Both steps are logistic regressions of few parameters, so every labelled pair serves for weights and
    probabilities; `mahalo.pairs.PairClassifier` learns a full matrix, and holds out pairs to calibrate on.

    The most probable candidates are accepted as long as the mean probability of all pairs in their connected groups is
    at least `precision`.

    Parameters
    ----------
    precision : float, default=0.95
        Share of the reported pairs that shall be the same.
    n_candidates : int, default=10
        Nearest rows of every row that are compared with it.
    base_rate : float, optional
        Share of same pairs among candidates, if pairs were chosen for labelling by their answer, such as known
        duplicates beside some that are none. Default: they were chosen without knowing it, as `propose_pairs` does.
    backend : {"exact", "faiss", "usearch"}, default="exact"
        Index that finds candidates.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each column's squared distance.
    model_ : PairModel
        Probability by squared distance, excess and equality of columns.
    n_same_, n_different_ : int
        Labelled pairs of either kind.

    Examples
    --------
    >>> import numpy as np
    >>> from mahalo.dedupe import Deduplicator, propose_pairs
    >>> rng = np.random.default_rng(0)
    >>> things = rng.normal(size=(200, 3))
    >>> rows = np.vstack([things, things[:100] + 0.05 * rng.normal(size=(100, 3))])
    >>> pairs = propose_pairs(rows, 80)
    >>> same = (pairs[:, 1] - pairs[:, 0]) == 200
    >>> found = Deduplicator().fit(rows, pairs, same).find(rows)
    >>> bool(np.mean(found.pairs[:, 1] - found.pairs[:, 0] == 200) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        precision: float = 0.95,
        n_candidates: int = 10,
        base_rate: float | None = None,
        backend: str = "exact",
    ) -> None:
        self.precision = precision
        self.n_candidates = n_candidates
        self.base_rate = base_rate
        self.backend = backend

    def fit(
        self,
        columns: Columns | ArrayLike,
        pairs: ArrayLike,
        same: ArrayLike,
        *,
        against: Columns | ArrayLike | None = None,
    ) -> Self:
        """Learn weights of columns and probabilities from labelled pairs.

        Parameters
        ----------
        columns : mapping of str to ndarray, or ndarray of shape (n_rows, n_columns)
            Columns by name, each (n_rows,) or (n_rows, length of its vectors). Of an array every column is one.
        pairs : array-like of int, shape (n_pairs, 2)
            Rows of `columns`; with `against` a row of `columns` and a row of `against`.
        same : array-like of shape (n_pairs,)
            1 or True for pairs that are the same, 0 or False for others.
        against : as `columns`, optional
            Second table: duplicates are sought between the two.
        """
        self.check_parameters()
        blocks, others = check_tables(columns, against)
        n_rows, n_others = (len(next(iter(table.values()))) for table in (blocks, others or blocks))
        index = _check_index(pairs, n_rows, n_others)
        answers = _check_answers(same, len(index))
        sample_weight = self._sample_weights(answers)
        D = _column_distances(blocks, others, index)
        self.weights_ = dict(zip(blocks, fit_falling(D, answers, sample_weight).tolist(), strict=True))
        self.n_same_, self.n_different_ = int(answers.sum()), int((~answers).sum())
        near = self._neighborhood(blocks, others)
        self.model_ = PairModel.fit(near.distances(index), _equal(D), answers, sample_weight)
        self.n_features_in_ = len(blocks)
        return self

    def find(self, columns: Columns | ArrayLike, *, against: Columns | ArrayLike | None = None) -> Duplicates:
        """Return the duplicates of a table, or between it and another."""
        near, probability = self._compare(columns, against)
        n_other = None if against is None else len(near.other)
        found = find_groups(near.pairs(), probability, self.precision, len(near.rows), n_other)
        if not len(found.pairs):
            warn(f"no pair is the same with enough certainty for a precision of {self.precision:g}: label more pairs.")
        return found

    def probability(
        self, columns: Columns | ArrayLike, pairs: ArrayLike, *, against: Columns | ArrayLike | None = None
    ) -> np.ndarray:
        """Return the probability that each pair of rows is the same, beside all other rows of the tables."""
        near, probability = self._compare(columns, against)
        return probability(_check_index(pairs, len(near.rows), len(near.other)))

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        for name in ("precision", "base_rate"):
            value = getattr(self, name)
            if not (value is None and name == "base_rate") and not (isinstance(value, Real) and 0 < float(value) < 1):
                raise ValueError(f"{name} must be a share between 0 and 1; got {value!r}.")
        check_count(self.n_candidates, "n_candidates")

    def _sample_weights(self, same: np.ndarray) -> np.ndarray:
        if self.base_rate is None:
            return np.ones(len(same))
        share = same.mean()
        return np.where(same, self.base_rate / share, (1.0 - self.base_rate) / (1.0 - share))

    def _compare(
        self, columns: Columns | ArrayLike, against: Columns | ArrayLike | None
    ) -> tuple[Neighborhood, Probability]:
        """Return the candidates of tables, and the function from pairs of their rows to probabilities."""
        check_is_fitted(self, "model_")
        blocks, others = check_tables(columns, against)
        if list(blocks) != list(self.weights_):
            raise ValueError(f"columns are {', '.join(blocks)}; learned from {', '.join(self.weights_)}.")
        near = self._neighborhood(blocks, others)

        def probability(pairs: np.ndarray) -> np.ndarray:
            return self.model_.probability(near.distances(pairs), _equal(_column_distances(blocks, others, pairs)))

        return near, probability

    def _neighborhood(self, blocks: Columns, others: Columns | None) -> Neighborhood:
        rows = scaled_rows(blocks, self.weights_)
        other = None if others is None else scaled_rows(others, self.weights_)
        return Neighborhood.search(rows, other, self.n_candidates, self.backend)


def _column_distances(blocks: Columns, others: Columns | None, pairs: np.ndarray) -> np.ndarray:
    """Return the squared distance of each pair in each column."""
    second = blocks if others is None else others
    return np.column_stack([sq_pair_distances(block, second[name], pairs) for name, block in blocks.items()])


def _equal(sq_distances: np.ndarray) -> np.ndarray:
    """Return 1.0 where a column does not tell two rows apart, up to rounding, else 0.0."""
    return (sq_distances < _EQUAL).astype(np.float64)


def _check_index(pairs: ArrayLike, n_rows: int, n_others: int) -> np.ndarray:
    index = as_indices(pairs, 2, "pairs")
    for largest, n in zip(index.max(axis=0, initial=-1), (n_rows, n_others), strict=True):
        if largest >= n:
            raise ValueError(f"pairs refer to row {largest}, but the table has {n} rows (0 to {n - 1}).")
    return index


def _check_answers(same: ArrayLike, n_pairs: int) -> np.ndarray:
    """Return answers as an array of bool; raise ValueError unless there are some of both kinds."""
    answers = as_same_mask(same, n_pairs)
    counts = {"the same": int(answers.sum()), "different": int((~answers).sum())}
    fewest = min(counts, key=counts.__getitem__)
    if not counts[fewest]:
        raise ValueError(f"no labelled pair is {fewest}; both kinds are needed.")
    if counts[fewest] < _FEW:
        warn(f"only {counts[fewest]} labelled pairs are {fewest}: the precision may be far from the one asked for.")
    return answers
