"""The `Constraints` class: pairs, triplets and linear forms over rows, with the ways to make them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..progress import SILENT, Progress
from ..types import MatrixLike
from ..validation import Seed, as_generator, as_numbers, as_row_count, as_rows, as_weights, check_sampling
from .arrays import edge_forms
from .diagnosis import ConstraintReport, diagnose
from .forms import EdgeForms
from .geometry import Geometry, geometry_of
from .groups import LinearForms, Pairs, Triplets, check_satisfiable, quadruplet_forms, signs_of
from .labels import class_codes
from .matrices import Position, RowPositions, add_matrices, as_symmetric, as_symmetric_all, restrict
from .relevance import check_grades, triplets_by_grade
from .row_names import as_row_numbers, as_same_mask, resolve_row_count
from .sampling import pairs_from_labels, target_laplacian, triplets_from_labels


class Constraints:
    """A set of constraints on the distances between rows of a data matrix.

    Make one with `from_labels`, `from_pairs`, `from_relevance`, `from_triplets` or `from_linear`; join several with
    ``+``. Constraints refer to rows by index. They are not array-like on purpose: a cross-validation splitter passes
    them on whole, and ``rows`` (the index of each row of X) selects those that apply to a fold.

    Order: pairs first, then triplets, then linear forms; multipliers and reports follow it. A linear objective
    (`linear_objective`) may be included; it is not a constraint and is not counted.
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

    @classmethod
    def from_pairs(
        cls,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        *,
        same: ArrayLike | None = None,
        index: Sequence[Hashable] | None = None,
        upper: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Make constraints from similar pairs, to be close, and dissimilar pairs, to be far apart.

        Parameters
        ----------
        similar, dissimilar : array-like of shape (n, 2), optional
            Row indices.
        same : array-like of 0 and 1, or of bool, optional
            1 for similar, 0 for dissimilar; the first argument then holds all pairs, and their order is kept.
        index : sequence of hashables, optional
            Names of all rows of X, in their order; pairs are then pairs of names.
        upper, lower : float or array-like, optional
            **Squared** distance: at most `upper` for similar pairs, at least `lower` for dissimilar pairs. By default
            percentiles of the squared distances in the data, computed at fit time.
        weight : float or array-like, optional
            Multiplies γ; one number, or one for each pair (similar first, or in the order of `same`).
        n_rows : int, optional
            Number of rows the indices refer to; fitting on another number of rows is then an error.
        """
        if same is not None and dissimilar is not None:
            raise ValueError("with same= all pairs go into the first argument; got dissimilar= too. Leave one out.")
        first = as_row_numbers(similar, 2, "pairs" if same is not None else "similar", index)
        second = as_row_numbers(dissimilar, 2, "dissimilar", index)
        ends = np.concatenate([first, second])
        is_similar = np.arange(len(ends)) < len(first) if same is None else as_same_mask(same, len(ends))
        n_rows = as_row_count(resolve_row_count(n_rows, index), ends)
        bound = np.empty(len(ends))
        bound[is_similar] = as_numbers(upper, int(is_similar.sum()), "upper", np.nan)
        bound[~is_similar] = as_numbers(lower, int((~is_similar).sum()), "lower", np.nan)
        sign = np.where(is_similar, 1.0, -1.0)
        pairs = Pairs(ends, sign, bound, as_weights(weight, len(ends)), np.zeros(len(ends), bool))
        return cls(pairs=pairs, n_rows=n_rows)

    @classmethod
    def from_relevance(
        cls,
        triples: Iterable[Sequence],
        *,
        index: Sequence[Hashable] | None = None,
        most_per_query: int = 100,
        margin: ArrayLike | None = None,
        random_state: Seed = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Make constraints from relevance grades of documents for queries; both are rows of X.

        A document of a higher grade should be closer to its query than one of a lower grade: triplets (query, better,
        worse), at most `most_per_query` for each query, drawn at random. The highest grade of all, if above 0, makes a
        similar pair of query and document; grades of 0 or less make dissimilar ones. Only the order of grades within a
        query counts, not their differences.

        Parameters
        ----------
        triples : iterable of (query, document, grade), or frame of these columns
        index : sequence of hashables, optional
            Names of all rows of X, in their order, if queries and documents are named.
        most_per_query : int, default=100
        margin : float or array-like, optional
            Margin of the triplets, as in `from_triplets`.
        random_state : int, Generator, RandomState or None
        n_rows : int, optional
        """
        ends, grade = check_grades(triples, index)
        n_rows = resolve_row_count(n_rows, index)
        triplets = triplets_by_grade(ends, grade, most_per_query, as_generator(random_state))
        highest = max(float(grade.max(initial=0.0)), np.finfo(float).tiny)
        pairs = cls.from_pairs(ends[grade >= highest], ends[grade <= 0], n_rows=n_rows)
        return pairs + cls.from_triplets(triplets, margin=margin, n_rows=n_rows)

    @classmethod
    def from_triplets(
        cls,
        triplets: ArrayLike,
        *,
        index: Sequence[Hashable] | None = None,
        margin: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Make constraints from triplets (a, b, c) of row indices: d²(a, b) + margin ≤ d²(a, c).

        `margin` is a **squared** distance; by default the lower of the two percentiles that bound pairs. (a, a, c)
        means that d²(a, c) is at least the margin. A triplet in which c is a or b cannot hold and raises ValueError.
        With `index`, the names of all rows of X in their order, triplets are of names.
        """
        corners = as_row_numbers(triplets, 3, "triplets", index)
        n_rows = as_row_count(resolve_row_count(n_rows, index), corners)
        a, b, c = corners.T
        check_satisfiable("triplet", corners, b == c, "b and c are the same row")
        check_satisfiable("triplet", corners, a == c, "a and c are the same row")
        margin, weight = as_numbers(margin, len(corners), "margin", np.nan), as_weights(weight, len(corners))
        return cls(triplets=Triplets(corners, margin, weight), n_rows=n_rows)

    @classmethod
    def from_linear(
        cls,
        matrices: MatrixLike | Sequence[MatrixLike],
        bounds: ArrayLike,
        *,
        sense: str | Sequence[str] = "<=",
        weight: ArrayLike | None = None,
    ) -> Constraints:
        """Make constraints tr(W Xᵀ Cₖ X) ≤ bₖ (or ≥), each Cₖ symmetric over the rows of X, sparse or dense.

        `sense` is "<=" or ">=", one for all or one for each.
        """
        forms = as_symmetric_all(matrices)
        sign = signs_of(sense, len(forms))
        bound = as_numbers(bounds, len(forms), "bounds", None, positive=False)
        no_quadruplet = np.full((len(forms), 4), -1, dtype=np.intp)
        linear = LinearForms(forms, sign, bound, as_weights(weight, len(forms)), no_quadruplet)
        return cls(linear=linear, n_rows=forms[0].shape[0] if forms else None)

    @classmethod
    def from_quadruplets(
        cls,
        quadruplets: ArrayLike,
        *,
        index: Sequence[Hashable] | None = None,
        margin: ArrayLike,
        weight: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Constraints:
        """Make constraints from quadruplets (a, b, c, d) of row indices: d²(a, b) + margin ≤ d²(c, d).

        `margin` is a **squared** distance. Use `from_triplets` where a = c; it takes less memory. `index` names the
        rows, as in `from_pairs`.
        """
        ends = as_row_numbers(quadruplets, 4, "quadruplets", index)
        n_rows = as_row_count(resolve_row_count(n_rows, index), ends)
        size = int(ends.max(initial=-1)) + 1 if n_rows is None else n_rows
        margin, weight = as_numbers(margin, len(ends), "margin", None), as_weights(weight, len(ends))
        return cls(linear=quadruplet_forms(ends, margin, weight, size), n_rows=n_rows)

    @classmethod
    def target_pull(
        cls, y: ArrayLike, X: MatrixLike | Geometry, *, n_neighbors: int = 3, weight: float = 1.0
    ) -> Constraints:
        """Make the linear objective of large-margin methods: `weight` times the mean squared distance of targets.

        Targets are each row's `n_neighbors` nearest rows of its own class. Together with
        ``from_labels(y, X, strategy="triplets")`` this is the large-margin nearest-neighbour objective.
        """
        weight = float(as_numbers(weight, 1, "weight", None)[0])
        return cls.linear_objective(target_laplacian(class_codes(y), geometry_of(X), n_neighbors, weight))

    @classmethod
    def linear_objective(cls, C: MatrixLike) -> Constraints:
        """Make the linear term tr(W Xᵀ C X), minimised together with the loss; C symmetric over the rows of X.

        Every loss accepts it; the SDP losses need it. Objectives that are joined add up. C is read as a sum over pairs
        of rows: a fit on a part of the rows drops the terms with a row outside that part.
        """
        C = as_symmetric(C, 0)
        return cls(n_rows=C.shape[0], objective=C)

    @classmethod
    def from_labels(
        cls,
        y: ArrayLike,
        X: MatrixLike | Geometry | None = None,
        *,
        strategy: str = "random",
        pairs_per_class: int | None = 100,
        n_neighbors: int = 5,
        random_state: Seed = None,
        progress: Progress = SILENT,
    ) -> Constraints:
        """Make pairs, or triplets, from class labels; −1, None, NaN, pandas' NA and masked entries are unlabelled.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
        X : array-like of shape (n_samples, n_features), optional
            Needed by strategies "neighbors" and "triplets".
        strategy : {"random", "neighbors", "triplets"}
            "random" is the paper's: for each class, `pairs_per_class` random pairs inside it and as many with one
            end outside. "neighbors": each row with its `n_neighbors` nearest rows of its own class, and with its
            `n_neighbors` nearest rows of other classes; copies of the row do not count. Bounds then come from
            percentiles of each of these groups.
            "triplets", as in large-margin methods: each row is closer to its nearest rows of its own class (targets)
            than to its nearest rows of other classes (impostors).
        pairs_per_class : int or None
            Pairs of either kind, or triplets, for each class. "neighbors" and "triplets" draw random rows of the class
            until there are this many. None: 500 for "random", 10,000 for the others (usually all rows).
        n_neighbors : int
        random_state : int, Generator, RandomState or None
        progress : Progress
            Reports how many classes are done; default: silent.
        """
        check_sampling(strategy, pairs_per_class, n_neighbors)
        rng, codes = as_generator(random_state), class_codes(y)
        geometry = None if X is None else geometry_of(X)
        if strategy == "triplets":
            index = triplets_from_labels(codes, geometry, pairs_per_class, n_neighbors, rng, progress)
            return cls.from_triplets(index, n_rows=len(codes))
        index, sign, local = pairs_from_labels(codes, geometry, strategy, pairs_per_class, n_neighbors, rng, progress)
        unset = np.full(len(sign), np.nan)
        pairs = Pairs(index, sign, unset, np.ones(len(sign)), np.full(len(sign), local))
        return cls(pairs=pairs, n_rows=len(codes))

    def __add__(self, other: Constraints) -> Constraints:
        if not isinstance(other, Constraints):
            return NotImplemented
        if None not in (self.n_rows, other.n_rows) and self.n_rows != other.n_rows:
            raise ValueError(
                f"cannot join constraints over {self.n_rows} rows with constraints over {other.n_rows} rows."
            )
        return Constraints(
            self.pairs.join(other.pairs),
            self.triplets.join(other.triplets),
            self.linear.join(other.linear),
            self.n_rows if self.n_rows is not None else other.n_rows,
            add_matrices(self.objective, other.objective),
        )

    @property
    def n_constraints(self) -> int:
        """Number of pairs, triplets and linear forms together."""
        return len(self.weight)

    @property
    def sign(self) -> np.ndarray:
        """Sign of each constraint: +1 where its value must not exceed the bound, −1 where it must not fall below."""
        return np.concatenate([self.pairs.sign, np.ones_like(self.triplets.margin), self.linear.sign])

    @property
    def bound(self) -> np.ndarray:
        """Bound on the value of each constraint; NaN where percentiles will set it at fit time."""
        return np.concatenate([self.pairs.bound, -self.triplets.margin, self.linear.bound])

    @property
    def weight(self) -> np.ndarray:
        """Factor of γ for each constraint."""
        return np.concatenate([self.pairs.weight, self.triplets.weight, self.linear.weight])

    @property
    def scale(self) -> np.ndarray:
        """Unit of each violation: the bound of a pair, the margin of a triplet, ``|bound|`` (1 if zero) of a form."""
        size = np.abs(self.linear.bound)
        return np.concatenate([self.pairs.bound, self.triplets.margin, np.where(size > 0, size, 1.0)])

    def __repr__(self) -> str:
        n_similar, n_quadruplets = int((self.pairs.sign > 0).sum()), int(self.linear.is_quadruplet.sum())
        counts = {
            "similar": n_similar,
            "dissimilar": len(self.pairs) - n_similar,
            "triplets": len(self.triplets),
            "quadruplets": n_quadruplets,
            "linear": len(self.linear) - n_quadruplets,
        }
        listed = [f"{n} {kind}" for kind, n in counts.items() if n] + ["a linear objective"] * (
            self.objective is not None
        )
        return f"Constraints({', '.join(listed) or 'none'})"

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        """Return constraint k in words; `numbers[i]`, if passed, is the number printed for row i."""
        for group in (self.pairs, self.triplets):
            if k < len(group):
                return group.describe(k, numbers)
            k -= len(group)
        return self.linear.describe(k, numbers)

    def report(self, X: MatrixLike) -> ConstraintReport:
        """Return a printable report: counts, duplicates, self-pairs, pairs at distance zero, contradictions."""
        return diagnose(self, X)

    def take(self, keep: np.ndarray) -> Constraints:
        """Return the constraints where the mask `keep` (in the order of this class) is true."""
        a, b = len(self.pairs), len(self.pairs) + len(self.triplets)
        return Constraints(
            self.pairs.take(keep[:a]),
            self.triplets.take(keep[a:b]),
            self.linear.take(keep[b:]),
            self.n_rows,
            self.objective,
        )

    def on_rows(self, rows: ArrayLike) -> tuple[Constraints, np.ndarray]:
        """Return the constraints with all ends among `rows`, renumbered to positions in it, and their mask.

        `rows[p]` is the index, in the numbering of these constraints, of row p of a data matrix.
        """
        rows = as_rows(rows)
        position = RowPositions(rows)
        keep = np.concatenate([group.inside(position) for group in (self.pairs, self.triplets, self.linear)])
        return self.take(keep).renumber(position, len(rows)), keep

    def renumber(self, position: Position, size: int) -> Constraints:
        """Return these constraints with row i called row position[i] of `size`."""
        return Constraints(
            self.pairs.renumber(position, size),
            self.triplets.renumber(position, size),
            self.linear.renumber(position, size),
            size,
            None if self.objective is None else restrict(self.objective, position, size),
        )

    def check_rows(self, n_rows: int) -> None:
        """Raise ValueError if these constraints cannot be about a data matrix of `n_rows` rows."""
        if self.n_rows is not None and self.n_rows != n_rows:
            raise ValueError(
                f"the constraints are about {self.n_rows} rows, X has {n_rows}. If X is a part of the data (a fold, "
                "say), pass rows=, the index of each row of X in the numbering of the constraints."
            )
        matrices = [*self.linear.matrix, *([] if self.objective is None else [self.objective])]
        rows = [self.pairs.index.max(initial=-1), self.triplets.index.max(initial=-1)]
        largest = int(max([*rows, *(C.shape[0] - 1 for C in matrices)]))
        if largest >= n_rows:
            raise ValueError(
                f"constraints refer to row {largest}, but X has {n_rows} rows (0 to {n_rows - 1}). If X is a part of "
                "the data, pass rows=, the index of each row of X in the numbering of the constraints."
            )

    def for_data(self, rows: ArrayLike | None, n_rows: int) -> tuple[Constraints, np.ndarray]:
        """Return the constraints renumbered to a data matrix, and the mask of those with all their rows in it."""
        if rows is not None:
            return self.on_rows(as_rows(rows, n_rows))
        self.check_rows(n_rows)
        return self, np.ones(self.n_constraints, dtype=bool)

    def edges(self) -> tuple[EdgeForms, np.ndarray]:
        """Return edge forms over the rows of these constraints, and those rows (−1: the origin).

        A linear objective is one more form, the last.
        """
        return edge_forms(self)


def as_constraints(value: Constraints | Sequence | None) -> Constraints | None:
    """Return a `constraints=` argument; raise ValueError if it is neither None nor a `Constraints`."""
    if value is None or isinstance(value, Constraints):
        return value
    raise ValueError(
        f"constraints must be a mahalo.Constraints; got {type(value).__name__}. Make one with "
        "Constraints.from_pairs(similar=..., dissimilar=...)."
    )
