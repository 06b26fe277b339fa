"""MetricLearner: validate → constrain → coordinates → solve → metric."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .basis import as_basis
from .basis.common import FixedBasis, Rows
from .constraints import (
    Constraints,
    Geometry,
    VectorGeometry,
    as_constraints,
    as_generator,
    as_rows,
    check_count,
    check_strategy,
    checked_bounds,
    checked_percentiles,
    class_codes,
    len_of,
    n_classes,
    resolve_bounds,
)
from .coordinates import (
    BaseKernel,
    KernelCoordinates,
    KernelSpace,
    LinearCoordinates,
    LinearSpace,
    Prior,
    orthonormal,
    span_of,
)
from .errors import InfeasibleError
from .linalg import symmetrize
from .losses import LogDet, Loss, as_loss, resting_point
from .metric import Metric, as_objects
from .progress import progress
from .solvers import Problem, Solution, bregman, dual, newton

__all__ = ["MetricLearner", "Setup"]

Coordinates = LinearCoordinates | KernelCoordinates
_SMALL_KERNEL = 200
_LARGEST_GRAM = 20_000  # rows beyond which n × n matrices are not attempted


@dataclass(frozen=True)
class Setup:
    """A fit up to the solver: resolved constraints, coordinates and the problem (its γ still to be set).

    Points and bounds in `problem` are in units of `2**exponent` and its square, so that no scale of the data
    over- or underflows. Where `span` is given, the problem's core matrix is over its columns only. `given` marks which
    of the constraints that came are still there.
    """

    constraints: Constraints
    given: np.ndarray
    coordinates: Coordinates
    span: np.ndarray | None
    problem: Problem
    exponent: int
    n_dropped: int
    n_outside: int


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a Mahalanobis distance from labels, pairs, triplets or linear constraints.

    Of all metrics W ⪰ 0 the one is found that minimises a loss, by default the LogDet divergence to the prior, plus γ
    times a penalty for each violated constraint (Jain, Kulis, Davis and Dhillon). The problem is convex; the fit ends
    with a certificate that bounds how far the answer can be from the optimum.

    Parameters
    ----------
    loss : {"logdet", "vonneumann", "frobenius"} or loss object, default="logdet"
        What keeps the metric close to the prior. Objects are those of `mahalo.losses`, such as ``Frobenius(eta=0.0)``
        or ``SDPLogDet()``, or your own. Under losses other than LogDet every violation pays its square.
    kernel : str or callable, default="linear"
        The base similarity: "linear" (a metric on the features themselves), any other name that
        sklearn.metrics.pairwise knows, a callable(X, Y) that returns a matrix of similarities (of objects of any
        kind), or "precomputed" (X is then the n × n kernel matrix).
    kernel_params : dict, optional
        Passed to the kernel, such as {"gamma": 0.1} for "rbf".
    basis : int, Basis or array, optional
        Learn in these few directions only, the metric being identity plus low rank: their number, an object of
        `mahalo.basis`, or an array R of shape (n_features, k), for kernels J of shape (n_samples, k). None: exact.
    residual : bool, default=True
        With a basis: keep the identity outside it; False: the low-dimensional part alone.
    psd : {"error", "clip", "shift"}, default="error"
        What to do about a kernel matrix with negative eigenvalues. "clip" learns in the directions with positive ones
        alone; "shift" adds to the similarity of each object with itself (of equal objects: they must be hashable).
    prior : {"identity", "diagonal", "covariance"} or array of shape (n_features, n_features), default="identity"
        The metric to stay close to: Euclidean; 1/variance of each feature; the inverse covariance (shrunk where it is
        singular); or any symmetric positive definite matrix W0. Linear kernel only.
    gamma : float, default=1.0
        Price of violating constraints. Small: stay near the prior. np.inf: constraints must hold.
    bounds : (upper, lower), optional
        **Squared** distances that similar pairs should not exceed, dissimilar pairs not fall below. By default
        percentiles of the squared distances in the data.
    percentiles : (low, high), optional
        Percentiles of squared distances under the prior to take bounds from. Default: (5, 95) of all distances, or with
        strategy "neighbors" 10 of the similar and 90 of the dissimilar pairs' own distances. The paper: (1, 99).
    strategy : {"random", "neighbors", "triplets"}, default="random"
        How labels become pairs or triplets; see `Constraints.from_labels`. "random" is the paper's.
    pairs_per_class : int or None, default=100
        Pairs of either kind for each class to draw from labels; None: see `Constraints.from_labels`.
    n_components : int, optional
        `transform` keeps this many directions, those in which the training rows differ most under the learned metric.
    solver : {"auto", "newton", "dual", "bregman"}, default="auto"
        "newton" is for LogDet with finite γ, "dual" for every loss and for γ = ∞: "auto" chooses between them, and both
        need tens of steps. "bregman" is the paper's Algorithm 1, for LogDet, slow for large γ.
    tol : float, default=1e-4
        Relative duality gap to reach, (P − D)/max(1, |P|).
    max_iter : int, optional
        Limit on steps (default 1000 for "newton", 500 for "dual") or sweeps (default 1000).
    random_state : int, RandomState, Generator or None, default=None
        Draws pairs and the sample for percentiles. None is a fixed sequence: fits repeat exactly.
    verbose : int, default=0
        1: a live line of progress (plain lines now and then without rich or a terminal); 2: every step.

    Attributes
    ----------
    metric_ : Metric
        The learned metric.
    certificate_ : Certificate
        Primal, dual, gap, relative_gap, max_violation, n_violated, converged.
    constraints_ : Constraints
        The constraints used, with their bounds, by row of X.
    duals_ : ndarray
        Multiplier λ ≥ 0 of each constraint: how much it shaped the metric. In the units of 1/bound.
    n_dropped_ : int
        Constraints left out because they say nothing or nothing that could be met (identical points).
    n_outside_ : int
        Constraints left out because a row they mention is not among `rows`.
    n_iter_ : int
    history_ : tuple of Step
        What each step of the solver did.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mahalo import MetricLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> learner = MetricLearner(prior="diagonal").fit(X, y)
    >>> learner.certificate_.converged
    True
    >>> learner.transform(X).shape
    (178, 13)
    """

    def __init__(
        self,
        *,
        loss="logdet",
        kernel="linear",
        kernel_params=None,
        basis=None,
        residual=True,
        psd="error",
        prior="identity",
        gamma=1.0,
        bounds=None,
        percentiles=None,
        strategy="random",
        pairs_per_class=100,
        n_components=None,
        solver="auto",
        tol=1e-4,
        max_iter=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.basis = basis
        self.residual = residual
        self.psd = psd
        self.prior = prior
        self.gamma = gamma
        self.bounds = bounds
        self.percentiles = percentiles
        self.strategy = strategy
        self.pairs_per_class = pairs_per_class
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    # Under metadata routing, meta-estimators hand both on without being asked: `rows` cut like y, `constraints` whole.
    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__score = {"constraints": True, "rows": True}  # noqa: RUF012

    def fit(self, X, y=None, *, constraints=None, rows=None):
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class labels; −1 for unlabelled rows. Not used to make pairs if `constraints` are given.
        constraints : Constraints, optional
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints (and of the rows of a basis J); needed when X is
            a part of the data. Labels alone need none.

        Returns
        -------
        self
        """
        check_gamma(self.gamma)
        self._check_parameters()
        X, y = self._validated(X, y, constraints)
        setup = prepare(self, X, y, as_constraints(constraints), rows)
        solution = self._solve(setup)
        self._keep(X, setup, solution)
        return self

    def _solve(self, setup: Setup) -> Solution:
        with progress(self.verbose, self.tol, self.gamma) as on_step:
            solution = solve(self, setup, self.gamma, on_step=on_step)
        warn_unless_converged(solution, self.tol)
        return solution

    def _keep(self, X, setup: Setup, solution: Solution) -> None:
        self.metric_ = make_metric(setup, solution, X, self.n_components)
        warn_if_zero(self.metric_)
        self.certificate_ = solution.certificate
        self.constraints_ = setup.constraints
        self.duals_ = np.ldexp(solution.lam, -2 * setup.exponent)
        self.history_ = solution.history
        self.n_iter_ = max(1, solution.n_iter)
        self.n_dropped_, self.n_outside_ = setup.n_dropped, setup.n_outside
        self._n_features_out = self.metric_.n_outputs if self.n_components is None else self.n_components

    def _validated(self, X, y, constraints):
        if y is None and constraints is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass labels y, or constraints=."
            )
        _check_not_empty(as_constraints(constraints))
        if self._takes_objects(X):
            X = as_objects(X)
            if len(X) < 2:
                raise ValueError(f"at least 2 objects are needed to learn a distance; got {len(X)}.")
            if y is not None:
                check_consistent_length(X, y)
            return X, None if y is None else column_or_1d(y)
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_min_samples": 2}
        if self.kernel == "precomputed":
            options["accept_sparse"] = False
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
        if self.kernel == "precomputed":
            _check_gram(X)
        return X, y

    def _takes_objects(self, X) -> bool:
        """Whether rows are objects only the user's kernel understands, not vectors."""
        if not callable(self.kernel):
            return False
        shape = getattr(X, "shape", None)
        return shape is None or len(shape) != 2

    def _check_parameters(self) -> None:
        if not (isinstance(self.tol, Real) and 0 < float(self.tol) < np.inf):
            raise ValueError(f"tol must be a positive number; got {self.tol!r}.")
        check_count(self.max_iter, "max_iter", or_none=True)
        if self.psd not in ("error", "clip", "shift"):
            raise ValueError(f"psd must be 'error', 'clip' or 'shift'; got {self.psd!r}.")
        as_loss(self.loss)
        if not self.residual and self.basis is None:
            raise ValueError("residual=False learns the part inside a basis alone; give a basis too, such as basis=20.")
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if not linear and not (isinstance(self.prior, str) and self.prior == "identity"):
            raise ValueError(
                "a prior is a matrix over features and needs kernel='linear'; with another kernel leave "
                "prior='identity'."
            )
        if not (self.kernel_params is None or isinstance(self.kernel_params, dict)):
            raise ValueError(f"kernel_params must be a dict, such as {{'gamma': 0.1}}; got {self.kernel_params!r}.")
        if linear and self.psd != "error":
            raise ValueError(f"psd={self.psd!r} is for kernels that may be indefinite; kernel='linear' never is.")
        if linear and self.kernel_params:
            raise ValueError(f"kernel='linear' takes no kernel_params; got {sorted(self.kernel_params)}.")
        if self.solver not in ("auto", "newton", "dual", "bregman"):
            raise ValueError(f"solver must be 'auto', 'newton', 'dual' or 'bregman'; got {self.solver!r}.")
        check_count(self.n_components, "n_components", or_none=True)
        for strategy in self._strategies():
            check_strategy(strategy)
        check_count(self.pairs_per_class, "pairs_per_class", or_none=True)
        if self.bounds is not None:
            checked_bounds(self.bounds)
        checked_percentiles(self.percentiles, (5, 95))

    def _strategies(self) -> tuple:
        return (self.strategy,)

    def transform(self, X):
        """Rows in the space where the learned distance is the Euclidean one."""
        check_is_fitted(self)
        return self.metric_.transform(self._rows(X))

    def _rows(self, X):
        if self.metric_.n_features is None:
            return as_objects(X)
        sparse = False if self.kernel == "precomputed" else "csr"
        return validate_data(self, X, accept_sparse=sparse, dtype=[np.float64, np.float32], reset=False)

    def score(self, X, y=None, *, constraints=None, rows=None) -> float:
        """How well the learned distance tells alike from unalike: area under the ROC curve over pairs of rows of X.

        The pairs are those of `constraints` with both ends among `rows`, or, from labels, random pairs of either kind;
        then X must have rows of two classes, so cross-validate with a shuffled or stratified splitter. The distance
        is the learned one, whatever `n_components` keeps. With a precomputed kernel it is that of the coordinates: the
        residual, what of a row lies outside the span of the training rows or the basis, is left out, because it takes
        similarities between the rows of X, and X holds those to the training rows only.
        """
        check_is_fitted(self)
        X = self._rows(X)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            # Similarities among new rows are not at hand; their coordinates are.
            T = dataclasses.replace(self.metric_, directions=None).transform(X)
            sq_distances = VectorGeometry(T).sq_distances
        else:

            def sq_distances(index):
                return self.metric_.pair_distances(X[index[:, 0]], X[index[:, 1]], squared=True)

        return pair_auc(sq_distances, len_of(X), y, as_constraints(constraints), rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = not (isinstance(self.kernel, str) and self.kernel == "precomputed")
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_gamma(gamma) -> None:
    if isinstance(gamma, bool) or not (isinstance(gamma, Real) and float(gamma) > 0):
        raise ValueError(
            f"gamma must be a number > 0, or np.inf for hard constraints; got {gamma!r}. "
            "Small values stay close to the prior."
        )


# -- from data to problem ------------------------------------------------------------------------------------


def prepare(learner, X, y, constraints: Constraints | None, rows, *, quiet: bool = False) -> Setup:
    """Everything up to the solver, shared by one fit and by a whole path of γ; `quiet` keeps warnings back."""
    rng = as_generator(learner.random_state)
    _check_magnitude(X)
    check_rows(rows, len_of(X))
    space = make_space(learner, X, y, rows, rng)
    geometry = space.geometry
    if constraints is None:
        constraints = Constraints.from_labels(
            y, geometry, strategy=learner.strategy, pairs_per_class=learner.pairs_per_class, random_state=rng
        )
        given = np.ones(constraints.n_constraints, dtype=bool)
    else:
        constraints, given = _on_these_rows(constraints, rows, len_of(X))
    n_outside = int((~given).sum())
    if isinstance(space, KernelSpace) and learner.psd != "error":
        rows_used = constraints.edges()[1]
        space = space.definite(rows_used[rows_used >= 0])
        geometry = space.geometry
    told_apart = _told_apart(constraints, geometry)
    _report_impossible(constraints, told_apart, given, hard=np.isinf(learner.gamma), quiet=quiet)
    n_dropped = int((~told_apart).sum())
    given[given] = told_apart
    constraints = constraints.take(told_apart) if n_dropped else constraints
    constraints = resolve_bounds(constraints, geometry, learner.bounds, learner.percentiles, rng)
    if constraints.n_constraints == 0:
        raise ValueError(
            f"no constraint is left to learn from ({n_outside} mention rows that are not in X, {n_dropped} join "
            "identical points). Check the constraints with constraints.report(X)."
        )
    coordinates, span, problem, exponent = _pose(constraints, space, as_loss(learner.loss))
    return Setup(constraints, given, coordinates, span, problem, exponent, n_dropped, n_outside)


def _check_magnitude(X) -> None:
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return  # objects, which only a kernel can measure
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > 0 and not 1e-150 <= largest <= 1e150:
        raise ValueError(
            f"the largest value in X is {largest:.3g}; squared distances would not fit into float64. Rescale X, say "
            "X / abs(X).max(): learned distances scale along."
        )


def make_space(learner, X, y, rows, rng) -> LinearSpace | KernelSpace:
    """Where distances are measured and learned: features under a prior, or the feature space of a kernel."""
    linear = isinstance(learner.kernel, str) and learner.kernel == "linear"
    basis = as_basis(learner.basis, kernel_space=not linear, has_labels=y is not None)
    codes = class_codes(y) if basis is not None and y is not None else None
    if linear:
        prior = Prior.of(learner.prior, X)
        if basis is None:
            return LinearSpace(prior, X)
        return LinearSpace(prior, X, orthonormal(_vectors(basis, prior, X, codes, rng)), learner.residual)
    kernel = BaseKernel.of(learner.kernel, learner.kernel_params)
    if basis is None:
        return KernelSpace(kernel, X, psd=learner.psd)
    if isinstance(basis, FixedBasis):
        J = _on_rows_of(basis.array, rows, len_of(X))
    else:
        plain = KernelSpace(kernel, X)
        rows_seen = Rows(len_of(X), None, lambda rows: plain.gram(rows).astype(np.float64), codes)
        J = basis.coefficients(rows_seen, rng)
    return KernelSpace(kernel, X, J, learner.residual, learner.psd)


def _vectors(basis, prior: Prior, X, codes, rng) -> np.ndarray:
    """R, n_features × k, of whitened rows."""
    Z = prior.whitened(X)
    if isinstance(basis, FixedBasis):
        R = basis.array
        if R.shape[0] != X.shape[1]:
            raise ValueError(
                f"basis must have one row for each of {X.shape[1]} features (n_features × k); got shape {R.shape}."
            )
        R = prior.whiten(R.T).T
    elif hasattr(basis, "vectors"):
        R = basis.vectors(Rows(Z.shape[0], Z, None, codes), rng)
    else:
        J = basis.coefficients(Rows(Z.shape[0], Z, lambda rows: _gram_of(Z[rows]), codes), rng)
        R = (J.T @ Z).T
    return np.asarray(R.todense() if sp.issparse(R) else R, dtype=np.float64)


def _gram_of(Z) -> np.ndarray:
    G = Z @ Z.T
    return np.asarray(G.todense() if sp.issparse(G) else G, dtype=np.float64)


def _on_rows_of(J, rows, n_samples: int):
    """J over the rows of X: renumbered like constraints where X is a part of the data."""
    if rows is not None and J.shape[0] > int(np.max(rows)):
        J = sp.csr_array(J)[np.asarray(rows)]
    if J.shape[0] != n_samples:
        raise ValueError(
            f"with this kernel basis is J, one row for each of {n_samples} samples (n_samples × k); "
            f"got shape {J.shape}."
        )
    return J


def _check_gram(K: np.ndarray) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"kernel='precomputed' needs the n × n matrix of the training rows; got shape {K.shape}.")
    asymmetry = float(np.abs(K - K.T).max())
    if asymmetry > 1e-6 * float(np.abs(K).max()):
        raise ValueError(
            f"the precomputed kernel matrix must be symmetric; it differs from its transpose by {asymmetry:.3g}."
        )


def _check_not_empty(constraints: Constraints | None) -> None:
    if constraints is None or constraints.n_constraints:
        return
    if constraints.objective is not None:
        raise ValueError(
            "a linear objective needs constraints beside it to learn from; add some, such as "
            "Constraints.from_labels(y) + objective."
        )
    raise ValueError(
        "the constraints are empty: there is nothing to learn from. Make some, such as "
        "Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[0, 2]])."
    )


def check_rows(rows, n_samples: int) -> None:
    if rows is None:
        return
    if np.shape(rows) != (n_samples,):
        raise ValueError(f"rows must have one index for each row of X, {n_samples}; got shape {np.shape(rows)}.")
    as_rows(rows)


def _on_these_rows(constraints: Constraints, rows, n_samples: int) -> tuple[Constraints, np.ndarray]:
    """The constraints by row of X, and the mask of those that have all their rows there."""
    if rows is None:
        constraints.check_rows(n_samples)
        return constraints, np.ones(constraints.n_constraints, dtype=bool)
    check_rows(rows, n_samples)
    return constraints.on_rows(rows)


def _told_apart(constraints: Constraints, geometry: Geometry) -> np.ndarray:
    """All but pairs of identical points: similar ones hold whatever is learned, dissimilar ones never can."""
    mask = np.ones(constraints.n_constraints, dtype=bool)
    mask[: len(constraints.pairs)] = geometry.sq_distances(constraints.pairs.index) != 0
    return mask


def _report_impossible(
    constraints: Constraints, told_apart: np.ndarray, given: np.ndarray, hard: bool, quiet: bool
) -> None:
    """Warn of dissimilar pairs of identical points, or raise if they must hold."""
    pairs = constraints.pairs
    impossible = np.flatnonzero(~told_apart[: len(pairs)] & (pairs.sign < 0))
    if not len(impossible):
        return
    i, j = pairs.index[impossible[0]]
    what = (
        f"{len(impossible)} dissimilar pair{'s' if len(impossible) > 1 else ''} of identical points, such as "
        f"rows ({i}, {j}), can never be satisfied"
    )
    if hard:
        lam = np.zeros(len(given))
        lam[np.flatnonzero(given)[impossible[0]]] = 1.0
        raise InfeasibleError(f"{what}; drop them or use a finite gamma.", multipliers=lam)
    if not quiet:
        warnings.warn(f"{what}; dropped.", UserWarning, stacklevel=4)


def _pose(
    constraints: Constraints, space: LinearSpace | KernelSpace, loss: Loss
) -> tuple[Coordinates, np.ndarray | None, Problem, int]:
    """The problem in coordinates, in units in which bounds are of order 1."""
    forms, rows = constraints.edges()
    coordinates, points, left_out = space.pose(forms, rows)
    scale = constraints.scale
    exponent = round(float(np.median(np.frexp(scale)[1])) / 2)
    points = np.ldexp(points, -exponent)
    points -= points.mean(axis=0)  # differences are all that counts, and they are more exact near zero
    span = span_of(points, forms) if getattr(loss, "on_span", False) else None
    points = np.ascontiguousarray(points if span is None else points @ span)
    # c_k = η [tr(C_k K0) − tr(C_k X̂X̂ᵀ)]: what the coordinates leave out of each constraint.
    left_out = resting_point(loss) * np.ldexp(left_out, -2 * exponent)
    tilt, constant = None, 0.0
    if constraints.objective is not None:
        # The last form is the objective; its value is in the units of X.
        forms, last, coefficient = forms.split_last()
        left_out, rest = np.split(left_out, [len(forms.tail)])
        tilt = np.ldexp(symmetrize(last.adjoint(points, coefficient)), 2 * exponent)
        constant = float(np.ldexp(coefficient @ rest, 2 * exponent))
    offset = left_out if forms.combine is None else forms.combine @ left_out
    problem = Problem(
        points=points,
        forms=forms,
        sign=constraints.sign,
        bound=np.ldexp(constraints.bound, -2 * exponent),
        scale=np.ldexp(scale, -2 * exponent),
        weight=constraints.weight,
        offset=offset,
        gamma=1.0,
        n_log=len(constraints.pairs) if type(loss) is LogDet else 0,
        loss=loss,
        tilt=tilt,
        constant=constant,
    )
    _check_within_reach(constraints, problem, exponent)
    return coordinates, span, problem.compact(), exponent


def _check_within_reach(constraints: Constraints, problem: Problem, exponent: int) -> None:
    """Raise where a constraint is so far from holding that slopes and curvatures leave float64."""
    value = problem.offset + problem.forms.apply(problem.points, problem.points)
    ratio = np.abs(value) / problem.scale
    close = (problem.sign < 0) & (np.arange(len(value)) < problem.n_log)
    wrong = np.flatnonzero((ratio > 1e120) | (close & (ratio < 1e-120)))
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"{constraints.describe(k)} is out of reach: under the prior its value is "
            f"{np.ldexp(value[k], 2 * exponent):.3g}. Bounds and margins are squared distances in the units of X; "
            "check them, or drop the constraint."
        )


# -- from problem to metric ------------------------------------------------------------------------------------


def solve(learner, setup: Setup, gamma: float, *, start: Solution | None = None, on_step=None) -> Solution:
    """Solve at one γ; `start` is the solution of the same setup at a smaller one."""
    problem = setup.problem.with_gamma(float(gamma))
    method = _METHODS[_solver_for(learner.solver, problem)]
    if method is bregman:
        # On K as the paper prints it while that is small; beyond, the same projections in coordinates, in blocks.
        small_kernel = isinstance(setup.coordinates, KernelCoordinates) and problem.forms.n_rows <= _SMALL_KERNEL
        method = partial(bregman, on_kernel=small_kernel)
    try:
        return method(problem, tol=learner.tol, max_iter=learner.max_iter, start=start, on_step=on_step)
    except InfeasibleError as error:
        raise _named(error, setup) from None


_METHODS: dict[str, Callable[..., Solution]] = {"newton": newton, "dual": dual, "bregman": bregman}


def _solver_for(solver: str, problem: Problem) -> str:
    """The solver to use, or an error where the one asked for cannot."""
    logdet = type(problem.loss) is LogDet and problem.tilt is None
    if solver == "auto":
        return "newton" if logdet and not problem.hard else "dual"
    if solver != "dual" and not logdet:
        what = "a linear objective" if type(problem.loss) is LogDet else f"the loss {type(problem.loss).__name__}"
        raise ValueError(f"solver={solver!r} cannot do {what}; use solver='dual' or 'auto'.")
    if solver == "newton" and problem.hard:
        raise ValueError("solver='newton' needs a finite gamma; for hard constraints use solver='dual' or 'auto'.")
    return solver


def _named(error: InfeasibleError, setup: Setup) -> InfeasibleError:
    """The same error with the constraints in words, and a multiplier for each that was given."""
    involved = error.constraints[np.argsort(-error.multipliers[error.constraints], kind="stable")]
    listed = "; ".join(setup.constraints.describe(k) for k in involved[:4])
    more = f"; and {len(involved) - 4} more" if len(involved) > 4 else ""
    multipliers = np.zeros(len(setup.given))
    multipliers[setup.given] = error.multipliers
    return InfeasibleError(
        f"{error} In words: {listed}{more}.",
        outcome=error.outcome,
        multipliers=multipliers,
        trace_bound=error.trace_bound,
    )


def warn_unless_converged(solution: Solution, tol: float) -> None:
    certificate = solution.certificate
    if not certificate.converged:
        warnings.warn(
            f"stopped after {solution.n_iter} steps with relative duality gap {certificate.relative_gap:.2e} (asked "
            f"for {tol:.0e}), largest violation {certificate.max_violation:.2e}. Raise tol, lower gamma (from np.inf "
            "to a finite one), or raise max_iter if you have set it; where features have very different scales, "
            "prior='diagonal' helps.",
            ConvergenceWarning,
            stacklevel=4,
        )


def warn_if_zero(metric: Metric, stacklevel: int = 4) -> None:
    if not metric.F.any() and (metric.eta == 0 or not metric.coordinates.residual):
        warnings.warn(
            "the learned metric is zero: under this loss nothing keeps distances up but dissimilar pairs, triplets and "
            "lower bounds, and there are none, or gamma is too small for them to count.",
            UserWarning,
            stacklevel=stacklevel,
        )


def make_metric(setup: Setup, solution: Solution, X, n_components: int | None) -> Metric:
    F = solution.F if setup.span is None else symmetrize(setup.span @ solution.F @ setup.span.T)
    metric = Metric(setup.coordinates, F, eta=resting_point(setup.problem.loss))
    if n_components is None:
        return metric
    if n_components > metric.n_outputs:
        raise ValueError(f"n_components must be at most the number of outputs, {metric.n_outputs}; got {n_components}.")
    return leading_part(metric, X, n_components)


def leading_part(metric: Metric, X, n_components: int) -> Metric:
    """The same metric, of which `transform` keeps the directions in which rows of X differ most."""
    wide = metric.n_outputs == metric.n_features and len_of(X) < min(metric.n_outputs, _LARGEST_GRAM)
    find = _directions_of_few_rows if wide else _directions_of_many_rows
    leading = find(metric, X, n_components).T
    # Signs are arbitrary; the largest entry of each direction is made positive so that fits repeat exactly.
    leading = leading * np.sign(leading[np.arange(n_components), np.abs(leading).argmax(axis=1)])[:, None]
    return dataclasses.replace(metric, directions=np.ascontiguousarray(leading))


def _directions_of_many_rows(metric: Metric, X, k: int) -> np.ndarray:
    """The k directions in which the transformed rows differ most, from their covariance."""
    _, vectors = np.linalg.eigh(_learned_covariance(metric, X))
    return vectors[:, ::-1][:, :k]


def _directions_of_few_rows(metric: Metric, X, k: int) -> np.ndarray:
    """The same from similarities of the rows: fewer rows than features, which may stay sparse.

    If u is an eigenvector of the centred n × n matrix T Tᵀ, then Tᵀu is one of TᵀT; and Tᵀu is the transform of the
    combination Xᵀu, because linear metrics transform linearly.
    """
    X = X.astype(np.float64)
    if not sp.issparse(X):
        X = X - X.mean(axis=0)
    K = metric.kernel(X)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(symmetrize(K))
    n_found = min(k, int((values > max(values[-1], 0.0) * 1e-14 * len(values)).sum()))
    u = vectors[:, ::-1][:, :n_found]
    found = metric.transform((X.T @ (u - u.mean(axis=0))).T).T if n_found else np.zeros((metric.n_outputs, 0))
    # Rows do not differ in any further direction, so any will do; orthonormal ones for all.
    others = np.random.default_rng(0).standard_normal((metric.n_outputs, k - n_found))
    return np.linalg.qr(np.hstack([found / np.linalg.norm(found, axis=0), others]))[0]


def _learned_covariance(metric: Metric, X) -> np.ndarray:
    """Covariance of the transformed rows, a block of them at a time."""
    total, second = np.zeros(metric.n_outputs), np.zeros((metric.n_outputs,) * 2)
    centre = np.asarray(metric.transform(X[:1]), dtype=np.float64)  # near the data, against cancellation
    for a in range(0, len_of(X), 1024):
        T = metric.transform(X[a : a + 1024]) - centre
        total += T.sum(axis=0)
        second += T.T @ T
    mean = total / len_of(X)
    return second / len_of(X) - np.outer(mean, mean)


def pair_auc(
    sq_distances: Callable[[np.ndarray], np.ndarray], n_rows: int, y, constraints: Constraints | None, rows
) -> float:
    """Area under the ROC curve of "similar" against learned distance; triplets count as pairs (a,b) and (a,c)."""
    from sklearn.metrics import roc_auc_score

    if constraints is None:
        if y is None:
            raise ValueError("score needs labels y or constraints= to know which rows are alike.")
        if (n := n_classes(y)) < 2:
            raise ValueError(
                f"score needs rows of at least two classes; these have {'one' if n else 'none'}. Use a shuffled or "
                "stratified splitter, such as cv=StratifiedKFold(3, shuffle=True)."
            )
        constraints = Constraints.from_labels(np.asarray(y), pairs_per_class=1000, random_state=0)
    else:
        constraints, _ = _on_these_rows(constraints, rows, n_rows)
    pairs, triplets = constraints.pairs, constraints.triplets
    index = np.concatenate([pairs.index, triplets.index[:, :2], triplets.index[:, ::2]])
    n = len(triplets)
    similar = np.concatenate([pairs.sign > 0, np.ones(n, dtype=bool), np.zeros(n, dtype=bool)])
    if similar.all() or not similar.any():
        raise ValueError(
            f"score needs similar and dissimilar pairs among the rows of X; got {int(similar.sum())} and "
            f"{int((~similar).sum())}. Use more pairs or larger folds."
        )
    return float(roc_auc_score(similar, -sq_distances(index)))
