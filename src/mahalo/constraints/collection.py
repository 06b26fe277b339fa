"""What people know about their data, by row index: pairs, triplets and general linear forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..validation import (
    Seed,
    as_generator,
    as_numbers,
    as_row_count,
    as_rows,
    as_weights,
    check_count,
    check_sampling,
)
from .diagnosis import ConstraintReport, diagnose
from .forms import EdgeForms
from .geometry import geometry_of
from .groups import LinearForms, Pairs, Triplets, check_can_hold
from .matrices import Places, Position, laplacian, restricted, sum_of, symmetric
from .naming import as_same, counted, graded, numbered, ordered_by_grade
from .posing import edge_forms
from .sampling import pairs_from_labels, target_pairs, triplets_from_labels

__all__ = ["Constraints", "as_constraints"]


class Constraints:
    """A set of constraints on the distances between rows of a data matrix.

    Make one with `from_labels`, `from_pairs`, `from_relevance`, `from_triplets` or `from_linear`; join several with
    ``+``. Constraints refer to rows by index. They are not array-like on purpose: a cross-validation splitter passes
    them on whole, and ``rows`` (the index of each row of X) says which of them apply to a fold.

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
    def from_pairs(
        cls,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        *,
        same: ArrayLike | None = None,
        index: Sequence[Any] | None = None,
        upper: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Pairs of rows that should be close, and pairs that should be far apart.

        Parameters
        ----------
        similar, dissimilar : array-like of shape (n, 2), optional
            Row indices.
        same : array-like of 0 and 1, or of bool, optional
            Whether the rows of each pair are alike; the first argument then holds all pairs, and they stay in order.
        index : sequence of hashables, optional
            Names of all rows of X, in their order; pairs are then pairs of names.
        upper, lower : float or array-like, optional
            **Squared** distance that similar pairs may at most, dissimilar pairs must at least, have. By default
            percentiles of the squared distances in the data, decided at fit time.
        weight : float or array-like, optional
            Multiplies γ; one number, or one for each pair (similar first, or as they come with `same`).
        n_rows : int, optional
            Number of rows the indices refer to, if known; fitting on another number of rows is then an error.
        """
        if same is not None and dissimilar is not None:
            raise ValueError("with same= all pairs go into the first argument; got dissimilar= too. Leave one out.")
        first = numbered(similar, 2, "pairs" if same is not None else "similar", index)
        second = numbered(dissimilar, 2, "dissimilar", index)
        ends = np.concatenate([first, second])
        alike = np.arange(len(ends)) < len(first) if same is None else as_same(same, len(ends))
        n_rows = as_row_count(counted(n_rows, index), ends)
        bound = np.empty(len(ends))
        bound[alike] = as_numbers(upper, int(alike.sum()), "upper", np.nan)
        bound[~alike] = as_numbers(lower, int((~alike).sum()), "lower", np.nan)
        sign = np.where(alike, 1.0, -1.0)
        pairs = Pairs(ends, sign, bound, as_weights(weight, len(ends)), np.zeros(len(ends), bool))
        return cls(pairs=pairs, n_rows=n_rows)

    @classmethod
    def from_relevance(
        cls,
        triples: Any,
        *,
        index: Sequence[Any] | None = None,
        most_per_query: int = 100,
        margin: ArrayLike | None = None,
        random_state: Seed = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Grades of documents for queries, rows (query, document, grade); queries and documents are rows of X alike.

        For each query a document of a higher grade is to be closer than one of a lower grade: triplets (query, better,
        worse), at most `most_per_query` of them, drawn at random. The highest grade of all, where above 0, makes a
        similar pair of query and document; grades of 0 or less make dissimilar ones. Grades are compared within a
        query, and their differences have no say.

        Parameters
        ----------
        triples : iterable of (query, document, grade), or frame of these columns
        index : sequence of hashables, optional
            Names of all rows of X, in their order, if queries and documents are named.
        most_per_query : int, default=100
        margin : float or array-like, optional
            Of the triplets, as in `from_triplets`.
        random_state : int, Generator, RandomState or None
        n_rows : int, optional
        """
        check_count(most_per_query, "most_per_query")
        ends, grade = graded(triples, index)
        n_rows = counted(n_rows, index)
        order = ordered_by_grade(ends, grade, most_per_query, as_generator(random_state))
        highest = max(float(grade.max(initial=0.0)), np.finfo(float).tiny)
        pairs = cls.from_pairs(ends[grade >= highest], ends[grade <= 0], n_rows=n_rows)
        return pairs + cls.from_triplets(order, margin=margin, n_rows=n_rows)

    @classmethod
    def from_triplets(
        cls,
        triplets: ArrayLike,
        *,
        index: Sequence[Any] | None = None,
        margin: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Triplets (a, b, c) of row indices: a is closer to b than to c, d²(a, b) + margin ≤ d²(a, c).

        `margin` is a **squared** distance; by default the lower of the two percentiles that bound pairs. (a, a, c) says
        that d²(a, c) is at least the margin; where c is a or b, nothing can satisfy it, and it is an error. With
        `index`, the names of all rows of X in their order, triplets are of names.
        """
        corners = numbered(triplets, 3, "triplets", index)
        n_rows = as_row_count(counted(n_rows, index), corners)
        a, b, c = corners.T
        check_can_hold("triplet", corners, b == c, "b and c are the same row")
        check_can_hold("triplet", corners, a == c, "a and c are the same row")
        margin, weight = as_numbers(margin, len(corners), "margin", np.nan), as_weights(weight, len(corners))
        return cls(triplets=Triplets(corners, margin, weight), n_rows=n_rows)

    @classmethod
    def from_linear(
        cls,
        matrices: Sequence[Any],
        bounds: ArrayLike,
        *,
        sense: str | Sequence[str] = "<=",
        weight: ArrayLike | None = None,
    ) -> Constraints:
        """General constraints tr(W Xᵀ Cₖ X) ≤ bₖ (or ≥), each Cₖ symmetric over the rows of X, sparse or dense.

        `sense` is "<=" or ">=", one for all or one for each.
        """
        if sp.issparse(matrices) or (isinstance(matrices, np.ndarray) and matrices.ndim == 2):
            matrices = [matrices]
        forms = tuple(symmetric(C, k) for k, C in enumerate(matrices))
        sizes = {C.shape[0] for C in forms}
        if len(sizes) > 1:
            raise ValueError(
                f"all matrices must be over the same rows; got sizes {sorted(sizes)}. "
                "Pad the smaller ones with zero rows and columns."
            )
        senses = [sense] * len(forms) if isinstance(sense, str) else list(sense)
        if len(senses) != len(forms) or set(senses) - {"<=", ">="}:
            raise ValueError(f"sense must be '<=' or '>=', one for all or one for each matrix; got {sense!r}.")
        bound = as_numbers(bounds, len(forms), "bounds", None, positive=False)
        sign = np.array([1.0 if s == "<=" else -1.0 for s in senses])
        unknown = np.full((len(forms), 4), -1, dtype=np.intp)
        linear = LinearForms(forms, sign, bound, as_weights(weight, len(forms)), unknown)
        return cls(linear=linear, n_rows=sizes.pop() if sizes else None)

    @classmethod
    def from_quadruplets(
        cls,
        quadruplets: ArrayLike,
        *,
        index: Sequence[Any] | None = None,
        margin: ArrayLike,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Quadruplets (a, b, c, d) of row indices: a and b are closer than c and d, d²(a, b) + margin ≤ d²(c, d).

        `margin` is a **squared** distance. Where a = c this is a triplet; `from_triplets` is then leaner. `index` names
        the rows, as in `from_pairs`.
        """
        ends = numbered(quadruplets, 4, "quadruplets", index)
        n_rows = as_row_count(counted(n_rows, index), ends)
        near, far = np.sort(ends[:, :2], axis=1), np.sort(ends[:, 2:], axis=1)
        check_can_hold("quadruplet", ends, far[:, 0] == far[:, 1], "c and d are the same row")
        check_can_hold("quadruplet", ends, (near == far).all(axis=1), "a and b are the rows c and d")
        size = int(ends.max(initial=-1)) + 1 if n_rows is None else n_rows
        # d²(a, b) − d²(c, d) ≤ −margin
        forms = tuple(symmetric(laplacian(q.reshape(2, 2), [1.0, -1.0], size), k) for k, q in enumerate(ends))
        bound = -as_numbers(margin, len(ends), "margin", None)
        linear = LinearForms(forms, np.ones(len(ends)), bound, as_weights(weight, len(ends)), ends)
        return cls(linear=linear, n_rows=n_rows)

    @classmethod
    def target_pull(cls, y: Any, X: Any, *, n_neighbors: int = 3, weight: float = 1.0) -> Constraints:
        """The linear objective of large-margin methods: `weight` times the mean squared distance of targets.

        Targets are each row's `n_neighbors` nearest rows of its own class. Beside
        ``from_labels(y, X, strategy="triplets")`` this is the large-margin nearest-neighbour objective.
        """
        check_count(n_neighbors, "n_neighbors")
        pairs = target_pairs(y, geometry_of(X), n_neighbors)
        if not len(pairs):
            raise ValueError("every class has one row only: there is nothing to pull together.")
        share = float(as_numbers(weight, 1, "weight", None)[0]) / len(pairs)
        return cls.linear_objective(laplacian(pairs, share, len(y)))

    @classmethod
    def linear_objective(cls, C: Any) -> Constraints:
        """The linear term tr(W Xᵀ C X) to minimise beside the loss; C symmetric over the rows of X, sparse or dense.

        The SDP losses are made for it; others take it too. Joined objectives add up. Fitted on a part of the rows, it
        loses the terms that mention a row outside, C being read as a sum over pairs of rows.
        """
        C = symmetric(C, 0)
        return cls(n_rows=C.shape[0], objective=C)

    @classmethod
    def from_labels(
        cls,
        y: Any,
        X: Any = None,
        *,
        strategy: str = "random",
        pairs_per_class: int | None = 100,
        n_neighbors: int = 5,
        random_state: Seed = None,
    ) -> Constraints:
        """Pairs, or triplets, from class labels; −1, None, NaN, pandas' NA or a mask is for rows without one.

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
        rng = check_sampling(strategy, pairs_per_class, n_neighbors, random_state)
        geometry = geometry_of(X)
        if strategy == "triplets":
            index = triplets_from_labels(y, geometry, pairs_per_class, n_neighbors, rng)
            return cls.from_triplets(index, n_rows=len(y))
        index, sign, local = pairs_from_labels(y, geometry, strategy, pairs_per_class, n_neighbors, rng)
        unset = np.full(len(sign), np.nan)
        pairs = Pairs(index, sign, unset, np.ones(len(sign)), np.full(len(sign), local))
        return cls(pairs=pairs, n_rows=len(y))

    def __add__(self, other: Constraints) -> Constraints:
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
            sum_of(self.objective, other.objective),
        )

    # -- looking at them -------------------------------------------------------------------------------

    @property
    def n_constraints(self) -> int:
        """Pairs, triplets and linear forms together."""
        return len(self.weight)

    @property
    def sign(self) -> np.ndarray:
        """+1 where a value must not exceed its bound, −1 where it must not fall below it."""
        return np.concatenate([self.pairs.sign, np.ones_like(self.triplets.margin), self.linear.sign])

    @property
    def bound(self) -> np.ndarray:
        """What each value is held against; NaN where percentiles are still to say."""
        return np.concatenate([self.pairs.bound, -self.triplets.margin, self.linear.bound])

    @property
    def weight(self) -> np.ndarray:
        """What multiplies γ, for each constraint."""
        return np.concatenate([self.pairs.weight, self.triplets.weight, self.linear.weight])

    @property
    def scale(self) -> np.ndarray:
        """What violations are measured by: the bound of a pair, the margin of a triplet, ``|bound|`` or 1 of a form."""
        size = np.abs(self.linear.bound)
        return np.concatenate([self.pairs.bound, self.triplets.margin, np.where(size > 0, size, 1.0)])

    def __repr__(self) -> str:
        n_similar, n_quadruplets = int((self.pairs.sign > 0).sum()), int(self.linear.is_quadruplet.sum())
        parts = [
            (n_similar, "similar"),
            (len(self.pairs) - n_similar, "dissimilar"),
            (len(self.triplets), "triplets"),
            (n_quadruplets, "quadruplets"),
            (len(self.linear) - n_quadruplets, "linear"),
        ]
        listed = [f"{n} {what}" for n, what in parts if n] + ["a linear objective"] * (self.objective is not None)
        return f"Constraints({', '.join(listed) or 'none'})"

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        """Constraint k in words; row i goes by the name `numbers[i]` where that is given."""
        for group in (self.pairs, self.triplets):
            if k < len(group):
                return group.describe(k, numbers)
            k -= len(group)
        return self.linear.describe(k, numbers)

    def report(self, X: Any) -> ConstraintReport:
        """Counts, duplicates, self-pairs, pairs at distance zero and contradictions, as a printable object."""
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

    def on_rows(self, rows: ArrayLike) -> tuple[Constraints, np.ndarray]:
        """The constraints with all ends among `rows`, renumbered to positions in it, and the mask of those kept.

        `rows[p]` is the index, in the numbering of these constraints, of row p of a data matrix.
        """
        rows = as_rows(rows)
        position = Places(rows)
        keep = np.concatenate([group.inside(position) for group in (self.pairs, self.triplets, self.linear)])
        return renumbered(self.take(keep), position, len(rows)), keep

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

    def of_data(self, rows: ArrayLike | None, n_rows: int) -> tuple[Constraints, np.ndarray]:
        """These constraints by row of a data matrix, and the mask of those that have all their rows there."""
        if rows is not None:
            return self.on_rows(as_rows(rows, n_rows))
        self.check_rows(n_rows)
        return self, np.ones(self.n_constraints, dtype=bool)

    def edges(self) -> tuple[EdgeForms, np.ndarray]:
        """These constraints as edge forms over the rows they touch, and those rows (−1: the origin).

        A linear objective is one more form, the last.
        """
        return edge_forms(self)


def renumbered(constraints: Constraints, position: Position, size: int) -> Constraints:
    """The same constraints where row i is row position[i] of `size`."""
    objective = constraints.objective
    return Constraints(
        constraints.pairs.renumbered(position, size),
        constraints.triplets.renumbered(position, size),
        constraints.linear.renumbered(position, size),
        size,
        None if objective is None else restricted(objective, position, size),
    )


def as_constraints(value: Constraints | Sequence | None) -> Constraints | None:
    """Check the type of a `constraints=` argument."""
    if value is None or isinstance(value, Constraints):
        return value
    raise ValueError(
        f"constraints must be a mahalo.Constraints; got {type(value).__name__}. Make one with "
        "Constraints.from_pairs(similar=..., dissimilar=...)."
    )
