"""What people know about their data, by row index: pairs, triplets and general linear forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .forms import EdgeForms
from .geometry import VectorGeometry

__all__ = ["Constraints", "LinearForms", "Pairs", "Triplets", "as_constraints", "as_rows"]


@dataclass(frozen=True)
class _Group:
    """Constraints of one kind; every field is an array (or tuple) with one entry a constraint."""

    def __len__(self) -> int:
        return len(self.weight)  # type: ignore[attr-defined]

    def _each(self, change: Callable[[Any], Any]):
        return type(self)(**{f.name: change(getattr(self, f.name)) for f in dataclasses.fields(self)})

    def take(self, keep: np.ndarray):
        index = np.flatnonzero(keep) if keep.dtype == bool else keep
        return self._each(lambda a: tuple(a[k] for k in index) if isinstance(a, tuple) else a[index])

    def joined(self, other):
        parts = {}
        for f in dataclasses.fields(self):
            a, b = getattr(self, f.name), getattr(other, f.name)
            parts[f.name] = a + b if isinstance(a, tuple) else np.concatenate([a, b])
        return type(self)(**parts)


@dataclass(frozen=True)
class Pairs(_Group):
    """sign +1: squared distance ≤ bound; −1: ≥ bound. NaN bounds come from percentiles when the data are known:
    of all distances, or, where `local`, of the distances of the pairs of the same sign."""

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    sign: np.ndarray = field(default_factory=lambda: np.empty(0))
    bound: np.ndarray = field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    local: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))


@dataclass(frozen=True)
class Triplets(_Group):
    """(a, b, c): d²(a, b) + margin ≤ d²(a, c). A NaN margin comes from a percentile when the data are known."""

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.intp))
    margin: np.ndarray = field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class LinearForms(_Group):
    """tr(W X C Xᵀ) ≤ bound (sign +1) or ≥ bound (−1), C sparse and symmetric over rows."""

    matrix: tuple[sp.csr_array, ...] = ()
    sign: np.ndarray = field(default_factory=lambda: np.empty(0))
    bound: np.ndarray = field(default_factory=lambda: np.empty(0))
    weight: np.ndarray = field(default_factory=lambda: np.empty(0))


class Constraints:
    """A set of constraints on the distances between rows of a data matrix.

    Make one with `from_labels`, `from_pairs`, `from_triplets` or `from_linear`; join several with ``+``.
    Constraints refer to rows by index. They are not array-like on purpose: a cross-validation splitter passes them
    on whole, and ``rows`` (the index of each row of X) says which of them apply to a fold.

    Order: pairs first, then triplets, then linear forms; multipliers and reports follow it. A linear objective
    (`linear_objective`) may come along; it is no constraint and is not counted.
    """

    def __init__(
        self,
        pairs: Pairs | None = None,
        triplets: Triplets | None = None,
        linear: LinearForms | None = None,
        n_rows: int | None = None,
        objective: sp.csr_array | None = None,
    ):
        self.pairs = Pairs() if pairs is None else pairs
        self.triplets = Triplets() if triplets is None else triplets
        self.linear = LinearForms() if linear is None else linear
        self.n_rows = n_rows
        self.objective = objective

    # -- making them ----------------------------------------------------------------------------------

    @classmethod
    def from_pairs(cls, similar=None, dissimilar=None, *, upper=None, lower=None, weight=None, n_rows=None):
        """Pairs of row indices that should be close, and pairs that should be far apart.

        Parameters
        ----------
        similar, dissimilar : array-like of shape (n, 2), optional
            Row indices.
        upper, lower : float or array-like, optional
            **Squared** distance that similar pairs may at most, dissimilar pairs must at least, have. By default
            percentiles of the squared distances in the data, decided at fit time.
        weight : float or array-like, optional
            Multiplies γ; one number, or one for each pair (similar first).
        n_rows : int, optional
            Number of rows the indices refer to, if known; fitting on another number of rows is then an error.
        """
        near, far = _indices(similar, 2, "similar"), _indices(dissimilar, 2, "dissimilar")
        index = np.concatenate([near, far])
        bound = np.concatenate(
            [_numbers(upper, len(near), "upper", np.nan), _numbers(lower, len(far), "lower", np.nan)]
        )
        sign = np.repeat([1.0, -1.0], [len(near), len(far)])
        pairs = Pairs(index, sign, bound, _weights(weight, len(index)), np.zeros(len(index), bool))
        return cls(pairs=pairs, n_rows=_row_count(n_rows, index))

    @classmethod
    def from_triplets(cls, triplets, *, margin=None, weight=None, n_rows=None):
        """Triplets (a, b, c) of row indices: a is closer to b than to c, d²(a, b) + margin ≤ d²(a, c).

        `margin` is a **squared** distance; by default the lower of the two percentiles that bound pairs.
        """
        index = _indices(triplets, 3, "triplets")
        return cls(
            triplets=Triplets(index, _numbers(margin, len(index), "margin", np.nan), _weights(weight, len(index))),
            n_rows=_row_count(n_rows, index),
        )

    @classmethod
    def from_linear(cls, matrices, bounds, *, sense="<=", weight=None):
        """General constraints tr(W X Cₖ Xᵀ) ≤ bₖ (or ≥), each Cₖ symmetric over the rows of X, sparse or dense.

        `sense` is "<=" or ">=", one for all or one for each.
        """
        if sp.issparse(matrices) or (isinstance(matrices, np.ndarray) and matrices.ndim == 2):
            matrices = [matrices]
        forms = tuple(_symmetric(C, k) for k, C in enumerate(matrices))
        sizes = {C.shape[0] for C in forms}
        if len(sizes) > 1:
            raise ValueError(
                f"all matrices must be over the same rows; got sizes {sorted(sizes)}. "
                "Pad the smaller ones with zero rows and columns."
            )
        senses = [sense] * len(forms) if isinstance(sense, str) else list(sense)
        if len(senses) != len(forms) or set(senses) - {"<=", ">="}:
            raise ValueError(f"sense must be '<=' or '>=', one for all or one for each matrix; got {sense!r}.")
        bound = _numbers(bounds, len(forms), "bounds", None, positive=False)
        sign = np.array([1.0 if s == "<=" else -1.0 for s in senses])
        linear = LinearForms(forms, sign, bound, _weights(weight, len(forms)))
        return cls(linear=linear, n_rows=sizes.pop() if sizes else None)

    @classmethod
    def from_quadruplets(cls, quadruplets, *, margin, weight=None, n_rows=None):
        """Quadruplets (a, b, c, d) of row indices: a and b are closer than c and d, d²(a, b) + margin ≤ d²(c, d).

        `margin` is a **squared** distance. Where a = c this is a triplet; `from_triplets` is then leaner.
        """
        index = _indices(quadruplets, 4, "quadruplets")
        n_rows = _row_count(n_rows, index)
        size = int(index.max(initial=-1)) + 1 if n_rows is None else n_rows
        forms = [_laplacian(q[:2], size) - _laplacian(q[2:], size) for q in index]
        made = cls.from_linear(forms, -_numbers(margin, len(index), "margin", None), weight=weight)
        made.n_rows = n_rows
        return made

    @classmethod
    def target_pull(cls, y, X, *, n_neighbors=3, weight=1.0):
        """The linear objective of large-margin methods: `weight` times the mean squared distance of targets.

        Targets are each row's `n_neighbors` nearest rows of its own class. Beside
        ``from_labels(y, X, strategy="triplets")`` this is the large-margin nearest-neighbour objective.
        """
        from .sampling import check_count, target_pairs

        check_count(n_neighbors, "n_neighbors")
        pairs = target_pairs(y, _geometry_of(X), n_neighbors)
        if not len(pairs):
            raise ValueError("every class has one row only: there is nothing to pull together.")
        share = float(_numbers(weight, 1, "weight", None)[0]) / len(pairs)
        i, j = pairs.T
        C = sp.csr_array(
            (np.repeat([share, share, -share, -share], len(pairs)), (np.r_[i, j, i, j], np.r_[i, j, j, i])),
            shape=(len(y), len(y)),
        )
        return cls.linear_objective(C)

    @classmethod
    def linear_objective(cls, C):
        """The linear term tr(W X C Xᵀ) to minimise beside the loss; C symmetric over the rows of X, sparse or dense.

        The SDP losses are made for it; others take it too. Joined objectives add up. Fitted on a part of the rows, it
        loses the terms that mention a row outside, C being read as a sum over pairs of rows.
        """
        C = _symmetric(C, 0)
        return cls(n_rows=C.shape[0], objective=C)

    @classmethod
    def from_labels(cls, y, X=None, *, strategy="random", pairs_per_class=100, n_neighbors=5, random_state=None):
        """Pairs, or triplets, from class labels; −1 marks unlabelled rows.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
        X : array-like of shape (n_samples, n_features), optional
            Needed by strategies "neighbors" and "triplets".
        strategy : {"random", "neighbors", "triplets"}
            "random" is the paper's: for each class, `pairs_per_class` random pairs inside it and as many with one
            end outside. "neighbors": each row with its `n_neighbors` nearest rows of its own class, and with its
            `n_neighbors` nearest rows of other classes; bounds then come from percentiles of each of these groups.
            "triplets", as for large margins: each row closer to each of its nearest of its own class (its targets)
            than to each of its nearest of other classes (impostors).
        pairs_per_class : int or None
            Pairs of either kind, or triplets, for each class. For "neighbors" and "triplets", random rows of the class
            are used until there are this many. None: 500 for "random", 10,000 for the others (mostly: all rows).
        n_neighbors : int
        random_state : int, Generator, RandomState or None
        """
        from .sampling import check_count, check_strategy, pairs_from_labels, triplets_from_labels

        check_strategy(strategy)
        check_count(pairs_per_class, "pairs_per_class", or_none=True)
        check_count(n_neighbors, "n_neighbors")
        geometry = _geometry_of(X)
        if strategy == "triplets":
            index = triplets_from_labels(y, geometry, pairs_per_class, n_neighbors, random_state)
            return cls.from_triplets(index, n_rows=len(y))
        index, sign, local = pairs_from_labels(y, geometry, strategy, pairs_per_class, n_neighbors, random_state)
        unset = np.full(len(sign), np.nan)
        pairs = Pairs(index, sign, unset, np.ones(len(sign)), np.full(len(sign), local))
        return cls(pairs=pairs, n_rows=len(y))

    def __add__(self, other):
        if not isinstance(other, Constraints):
            return NotImplemented
        if None not in (self.n_rows, other.n_rows) and self.n_rows != other.n_rows:
            raise ValueError(
                f"cannot join constraints over {self.n_rows} rows with constraints over {other.n_rows} rows."
            )
        return Constraints(
            self.pairs.joined(other.pairs),
            self.triplets.joined(other.triplets),
            self.linear.joined(other.linear),
            self.n_rows if self.n_rows is not None else other.n_rows,
            _sum_of(self.objective, other.objective),
        )

    # -- looking at them -------------------------------------------------------------------------------

    @property
    def n_constraints(self) -> int:
        return len(self.pairs) + len(self.triplets) + len(self.linear)

    @property
    def sign(self) -> np.ndarray:
        return np.concatenate([self.pairs.sign, np.ones(len(self.triplets)), self.linear.sign])

    @property
    def bound(self) -> np.ndarray:
        return np.concatenate([self.pairs.bound, -self.triplets.margin, self.linear.bound])

    @property
    def weight(self) -> np.ndarray:
        return np.concatenate([self.pairs.weight, self.triplets.weight, self.linear.weight])

    @property
    def scale(self) -> np.ndarray:
        """What a violation is measured by: the bound of a pair, the margin of a triplet, |bound| (or 1) of a form."""
        size = np.abs(self.linear.bound)
        return np.concatenate([self.pairs.bound, self.triplets.margin, np.where(size > 0, size, 1.0)])

    def __repr__(self) -> str:
        n_similar = int((self.pairs.sign > 0).sum())
        parts = [
            (n_similar, "similar"),
            (len(self.pairs) - n_similar, "dissimilar"),
            (len(self.triplets), "triplets"),
            (len(self.linear), "linear"),
        ]
        listed = [f"{n} {what}" for n, what in parts if n] + ["a linear objective"] * (self.objective is not None)
        return f"Constraints({', '.join(listed) or 'none'})"

    def describe(self, k: int) -> str:
        """Constraint k in words."""
        if k < len(self.pairs):
            i, j = self.pairs.index[k]
            relation = "≤" if self.pairs.sign[k] > 0 else "≥"
            return f"pair ({i}, {j}) {relation} {self.pairs.bound[k]:.4g}"
        k -= len(self.pairs)
        if k < len(self.triplets):
            a, b, c = self.triplets.index[k]
            return f"triplet ({a}, {b}, {c}) with margin {self.triplets.margin[k]:.4g}"
        k -= len(self.triplets)
        return f"linear form {k} {'≤' if self.linear.sign[k] > 0 else '≥'} {self.linear.bound[k]:.4g}"

    def report(self, X):
        """Counts, duplicates, self-pairs, pairs at distance zero and contradictions, as a printable object."""
        from .diagnosis import diagnose

        return diagnose(self, X)

    # -- using them ------------------------------------------------------------------------------------

    def take(self, keep: np.ndarray) -> Constraints:
        """The constraints where the mask `keep` (in the order of this class) is true."""
        a, b = len(self.pairs), len(self.pairs) + len(self.triplets)
        return Constraints(
            self.pairs.take(keep[:a]),
            self.triplets.take(keep[a:b]),
            self.linear.take(keep[b:]),
            self.n_rows,
            self.objective,
        )

    def on_rows(self, rows) -> tuple[Constraints, np.ndarray]:
        """The constraints with all ends among `rows`, renumbered to positions in it, and the mask of those kept.

        `rows[p]` is the index, in the numbering of these constraints, of row p of a data matrix.
        """
        rows = as_rows(rows)
        n = max([int(rows.max(initial=-1)) + 1, self.n_rows or 0, self._largest_index() + 1])
        position = np.full(n, -1, dtype=np.intp)
        position[rows[::-1]] = np.arange(len(rows))[::-1]  # first occurrence wins
        known = position >= 0
        keep = np.concatenate(
            [
                known[self.pairs.index].all(axis=1),
                known[self.triplets.index].all(axis=1),
                np.array([known[np.unique(C.nonzero()[0])].all() for C in self.linear.matrix], dtype=bool),
            ]
        )
        kept = self.take(keep)
        size = len(rows)
        return (
            Constraints(
                dataclasses.replace(kept.pairs, index=position[kept.pairs.index]),
                dataclasses.replace(kept.triplets, index=position[kept.triplets.index]),
                dataclasses.replace(
                    kept.linear, matrix=tuple(_renumbered(C, position, size) for C in kept.linear.matrix)
                ),
                size,
                None if self.objective is None else _restricted(self.objective, position, size),
            ),
            keep,
        )

    def _largest_index(self) -> int:
        sizes = [int(self.pairs.index.max(initial=-1)), int(self.triplets.index.max(initial=-1))]
        matrices = [*self.linear.matrix, *([] if self.objective is None else [self.objective])]
        return max([*sizes, *(C.shape[0] - 1 for C in matrices)])

    def check_rows(self, n_rows: int) -> None:
        """Raise unless these constraints can be about a data matrix of `n_rows` rows."""
        if self.n_rows is not None and self.n_rows != n_rows:
            raise ValueError(
                f"the constraints are about {self.n_rows} rows, X has {n_rows}. If X is a part of the data (a fold, "
                "say), pass rows=, the index of each row of X in the numbering of the constraints."
            )
        largest = self._largest_index()
        if largest >= n_rows:
            raise ValueError(
                f"constraints refer to row {largest}, but X has {n_rows} rows (0 to {n_rows - 1}). If X is a part of "
                "the data, pass rows=, the index of each row of X in the numbering of the constraints."
            )

    def edges(self) -> tuple[EdgeForms, np.ndarray]:
        """These constraints as edge forms over the rows they touch, and those rows (−1: the origin).

        A linear objective is one more form, the last.
        """
        p, t = self.pairs.index, self.triplets.index
        matrices = [*self.linear.matrix, *([] if self.objective is None else [self.objective])]
        parts = [_edges_of(C) for C in matrices]
        tail = np.concatenate([p[:, 0], np.repeat(t[:, 0], 2), *(part[0] for part in parts)])
        head = np.concatenate([p[:, 1], t[:, 1:].ravel(), *(part[1] for part in parts)])
        rows, compact = np.unique(np.concatenate([tail, head]), return_inverse=True)
        tail, head = np.ascontiguousarray(compact.reshape(2, -1), dtype=np.intp)
        if not len(t) and not matrices:
            return EdgeForms(tail, head, len(rows)), rows
        coefficient = np.concatenate([np.ones(len(p)), np.tile([1.0, -1.0], len(t)), *(part[2] for part in parts)])
        n_edges = np.repeat([0, 1, 2, *(len(part[2]) for part in parts)], [1, len(p), len(t), *[1] * len(parts)])
        integer = np.int32 if len(tail) < 2**31 else np.int64
        index, first = np.arange(len(tail), dtype=integer), np.cumsum(n_edges, dtype=integer)
        combine = sp.csr_array((coefficient, index, first), shape=(len(n_edges) - 1, len(tail)))
        return EdgeForms(tail, head, len(rows), combine), rows


def _geometry_of(X):
    """Distances between rows, from the rows or from whatever can tell already."""
    if X is None or hasattr(X, "nearest"):
        return X
    return VectorGeometry(X if sp.issparse(X) else np.asarray(X))


def _edges_of(C: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C as edges: off-diagonal entries join two rows, row sums join a row and the origin (−1)."""
    row, col = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr)), C.indices
    upper = row < col
    total = np.bincount(row, weights=C.data, minlength=C.shape[0])
    scale = np.abs(C.data).max(initial=0.0)
    to_origin = np.flatnonzero(np.abs(total) > 1e-15 * scale * C.shape[0])
    return (
        np.concatenate([row[upper], to_origin]).astype(np.intp),
        np.concatenate([col[upper], np.full(len(to_origin), -1)]).astype(np.intp),
        np.concatenate([-C.data[upper], total[to_origin]]),
    )


def _indices(values, width: int, what: str) -> np.ndarray:
    """Row indices as an (n, width) integer array, or an error that says what is wrong with them."""
    if values is None:
        return np.empty((0, width), dtype=np.intp)
    index = np.asarray(values)
    if index.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if index.ndim != 2 or index.shape[1] != width:
        raise ValueError(f"{what} must have shape (n, {width}), row indices; got shape {index.shape}.")
    if index.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be integer row indices; got dtype {index.dtype}. Convert with .astype(int) if they are "
            "indices, or pass the rows' positions instead of the rows themselves."
        )
    if index.min() < 0:
        bad = index[(index < 0).any(axis=1)][0].tolist()
        raise ValueError(f"{what} must be row indices ≥ 0; got {bad}. Count rows from 0; negative indices do not wrap.")
    return index.astype(np.intp)


def as_rows(rows) -> np.ndarray:
    """The indices `rows` of the rows of a data matrix, checked."""
    return _indices(np.reshape(np.asarray(rows), (-1, 1)), 1, "rows").ravel()


def _numbers(value, n: int, what: str, default: float | None, positive: bool = True) -> np.ndarray:
    if value is None:
        if default is None:
            raise ValueError(f"{what} is required.")
        return np.full(n, default)
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n):
        raise ValueError(f"{what} must be one number or {n} of them, one for each; got shape {array.shape}.")
    if np.isnan(array).any() or np.isinf(array).any():
        raise ValueError(f"{what} must be finite; got NaN or infinity.")
    if positive and (array <= 0).any():
        hint = " (bounds are squared distances)" if what in ("upper", "lower", "margin") else ""
        raise ValueError(f"{what} must be > 0{hint}; got {float(array.min()):.4g}.")
    return np.broadcast_to(array, n).astype(np.float64)


def _weights(value, n: int) -> np.ndarray:
    weight = _numbers(value, n, "weight", 1.0)
    wrong = (weight < 1e-20) | (weight > 1e20)
    if wrong.any():
        raise ValueError(
            f"weight must lie between 1e-20 and 1e20; got {weight[wrong][0]:.4g}. Weights multiply gamma: change that "
            "for all together, and drop constraints that should not count."
        )
    return weight


def _row_count(n_rows, index: np.ndarray) -> int | None:
    if n_rows is None:
        return None
    largest = int(index.max(initial=-1))
    if largest >= n_rows:
        raise ValueError(f"row index {largest} is out of range for n_rows={n_rows}.")
    return int(n_rows)


def _symmetric(C, k: int) -> sp.csr_array:
    C = sp.csr_array(C).astype(np.float64)
    if C.shape[0] != C.shape[1]:
        raise ValueError(f"matrix {k} must be square, over the rows of X; got shape {C.shape}.")
    C.sum_duplicates()
    C.eliminate_zeros()
    if not np.isfinite(C.data).all():
        raise ValueError(f"matrix {k} contains NaN or infinity.")
    if C.nnz == 0:
        raise ValueError(f"matrix {k} is zero: it says nothing about the metric; drop it.")
    asymmetry = float(abs(C - C.T).max())
    if asymmetry > 1e-10 * np.abs(C.data).max():
        raise ValueError(
            f"matrix {k} must be symmetric; it differs from its transpose by {asymmetry:.3g}. "
            "Pass 0.5 * (C + C.T): the constraint is the same."
        )
    return sp.csr_array(0.5 * (C + C.T))


def _renumbered(C: sp.csr_array, position: np.ndarray, size: int) -> sp.csr_array:
    entries = sp.coo_array(C)
    row, col = entries.coords
    return sp.csr_array((entries.data, (position[row], position[col])), shape=(size, size))


def _laplacian(pair: np.ndarray, size: int) -> sp.csr_array:
    """(e_i − e_j)(e_i − e_j)ᵀ."""
    i, j = pair
    return sp.csr_array(([1.0, 1.0, -1.0, -1.0], ([i, j, i, j], [i, j, j, i])), shape=(size, size))


def _sum_of(one: sp.csr_array | None, other: sp.csr_array | None) -> sp.csr_array | None:
    if one is None or other is None:
        return other if one is None else one
    return sp.csr_array(one + other)


def _restricted(C: sp.csr_array, position: np.ndarray, size: int) -> sp.csr_array:
    """C as a sum over pairs of rows (and rows with the origin), without the terms that leave the rows kept."""
    tail, head, coefficient = _edges_of(C)
    to_origin = head < 0
    tail, head = position[tail], position[head]
    alone = to_origin & (tail >= 0)
    between = ~to_origin & (tail >= 0) & (head >= 0)
    i, j, c = tail[between], head[between], coefficient[between]
    rows = np.concatenate([i, j, i, j, tail[alone]])
    columns = np.concatenate([i, j, j, i, tail[alone]])
    values = np.concatenate([c, c, -c, -c, coefficient[alone]])
    return sp.csr_array((values, (rows, columns)), shape=(size, size))


def as_constraints(value: Constraints | Sequence | None) -> Constraints | None:
    """Check the type of a `constraints=` argument."""
    if value is None or isinstance(value, Constraints):
        return value
    raise ValueError(
        f"constraints must be a mahalo.Constraints; got {type(value).__name__}. Make one with "
        "Constraints.from_pairs(similar=..., dissimilar=...)."
    )
