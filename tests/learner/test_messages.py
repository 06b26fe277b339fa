"""Bad input is refused with what was got, what was wanted and what to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

from mahalo import Constraints, MetricLearner, MetricLearnerCV, metric_path
from mahalo.pairs import PairSplit

SOME = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.5, lower=9.0)


@pytest.fixture
def X(rng):
    return rng.standard_normal((12, 3))


Y = np.arange(12) % 2


# -- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0, 0.0, -1.0, np.nan, -np.inf, "1", None])
def test_gamma(X, gamma):
    with pytest.raises(ValueError, match=r"gamma must be a number > 0, or np\.inf for hard constraints; got"):
        MetricLearner(gamma=gamma).fit(X, Y)


@pytest.mark.parametrize("gammas", [[1.0, 0.0], [np.nan], [-1.0], 0.0])
def test_gammas(X, gammas):
    for call in (lambda: metric_path(X, Y, gammas=gammas), lambda: MetricLearnerCV(gammas=gammas).fit(X, Y)):
        with pytest.raises(ValueError, match=r"gamma must be a number > 0"):
            call()


@pytest.mark.parametrize("gammas", [[], [[1.0, 2.0]]])
def test_shape_of_gammas(X, gammas):
    with pytest.raises(ValueError, match=r"gammas must be a list of numbers; got shape"):
        metric_path(X, Y, gammas=gammas)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": 0.0}, r"tol must be a positive number; got 0\.0"),
        ({"tol": -1e-3}, r"tol must be a positive number"),
        ({"tol": np.nan}, r"tol must be a positive number; got nan"),
        ({"tol": np.inf}, r"tol must be a positive number; got inf"),
        ({"tol": "small"}, r"tol must be a positive number; got 'small'"),
        ({"max_iter": 0}, r"max_iter must be a positive integer or None; got 0"),
        ({"max_iter": 2.5}, r"max_iter must be a positive integer or None; got 2\.5"),
        ({"solver": "simplex"}, r"solver must be 'auto', 'newton', 'dual' or 'bregman'; got 'simplex'"),
        ({"n_components": 0}, r"n_components must be a positive integer or None; got 0"),
        ({"n_components": 1.0}, r"n_components must be a positive integer or None; got 1\.0"),
        ({"n_components": 4}, r"n_components must be at most the number of outputs, 3; got 4"),
        ({"strategy": "all"}, r"strategy must be 'random', 'neighbors' or 'triplets'; got 'all'"),
        ({"strategy": ("random",)}, r"strategy must be 'random', 'neighbors' or 'triplets'; got \('random',\)"),
        ({"strategy": None}, r"strategy must be 'random', 'neighbors' or 'triplets'; got None"),
        ({"pairs_per_class": 0}, r"pairs_per_class must be a positive integer or None; got 0"),
        ({"pairs_per_class": 10.7}, r"pairs_per_class must be a positive integer or None; got 10\.7"),
        ({"pairs_per_class": True}, r"pairs_per_class must be a positive integer or None; got True"),
        ({"pairs_per_class": "10"}, r"pairs_per_class must be a positive integer or None; got '10'"),
        ({"pairs_per_class": np.inf}, r"pairs_per_class must be a positive integer or None; got inf"),
        ({"bounds": 3.0}, r"bounds must be two numbers \(upper, lower\), squared distances; got 3\.0"),
        ({"bounds": (1, 2, 3)}, r"bounds must be two numbers"),
        ({"bounds": (0.0, 1.0)}, r"bounds .* squared distances and must be > 0 and finite; got \(0\.0, 1\.0\)"),
        ({"bounds": (1.0, np.inf)}, r"must be > 0 and finite"),
        ({"bounds": (np.nan, 1.0)}, r"must be > 0 and finite"),
        ({"percentiles": 5}, r"percentiles must be two numbers, such as \(1, 99\); got 5"),
        ({"percentiles": (-1, 99)}, r"percentiles must lie between 0 and 100; got \(-1, 99\)"),
        ({"percentiles": (1, 101)}, r"percentiles must lie between 0 and 100"),
        ({"percentiles": (np.nan, 99)}, r"percentiles must lie between 0 and 100"),
        ({"percentiles": (99, 1)}, r"percentiles are \(low, high\), such as \(1, 99\); got \(99, 1\)\. Swap them"),
        ({"gamma": 1e300}, r"gamma must be at most 1e\+200, .*; got 1e\+300\. Use np\.inf if constraints must hold"),
        ({"prior": sp.eye_array(3)}, r"prior must be a dense matrix; got a sparse one of shape \(3, 3\)\. Pass"),
        ({"prior": np.eye(3).tolist(), "kernel": "rbf"}, r"or a matrix, is over features and needs kernel='linear'"),
        ({"prior": sp.eye_array(3), "kernel": "rbf"}, r"or a matrix, is over features and needs kernel='linear'"),
        ({"psd": "clip"}, r"psd='clip' is for kernels that may be indefinite; kernel='linear' never is"),
    ],
)
def test_parameters(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        MetricLearner(**parameters).fit(X, Y)
    with pytest.raises(ValueError, match=message):  # also where constraints leave them nothing to do
        MetricLearner(**parameters).fit(X, constraints=SOME)
    if parameters.keys() <= {"bounds", "percentiles", "pairs_per_class"}:
        with pytest.raises(ValueError, match=message):
            MetricLearnerCV(gammas=[1.0], **parameters).fit(X, constraints=SOME)


def test_some_strategy_is_needed(X):
    with pytest.raises(ValueError, match=r"strategy must hold at least one candidate; got an empty tuple"):
        MetricLearnerCV(strategy=()).fit(X, Y)
    with pytest.raises(ValueError, match=r"strategy must be 'random', 'neighbors' or 'triplets'; got 'all'"):
        MetricLearnerCV(strategy=("random", "all")).fit(X, Y)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3", np.inf, None])
def test_numbers_of_neighbours(X, value):
    for call in (
        lambda: Constraints.from_labels(Y, X, strategy="neighbors", n_neighbors=value),
        lambda: Constraints.from_labels(Y, n_neighbors=value),
        lambda: Constraints.target_pull(Y, X, n_neighbors=value),
    ):
        with pytest.raises(ValueError, match=r"n_neighbors must be a positive integer; got "):
            call()


@pytest.mark.parametrize("value", [0, 2.5, False, "x", np.inf])
def test_pairs_per_class_of_constraints(X, value):
    for strategy in ("random", "neighbors", "triplets"):
        with pytest.raises(ValueError, match=r"pairs_per_class must be a positive integer or None; got "):
            Constraints.from_labels(Y, X, strategy=strategy, pairs_per_class=value)


@pytest.mark.parametrize("strategy", ["neighbors", "triplets"])
def test_nearest_sparse_rows_under_correlations(X, strategy):
    message = r"^a search for nearest rows would make sparse X dense .* or strategy='random'"
    with pytest.raises(ValueError, match=message):
        MetricLearner(strategy=strategy, prior="covariance").fit(sp.csr_array(X), Y)


@pytest.mark.parametrize("rows", [np.arange(11), np.arange(24).reshape(12, 2), 3])
def test_rows_are_checked_beside_labels_too(X, rows):
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 12; got shape"):
        MetricLearner().fit(X, Y, rows=rows)
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 12; got shape"):
        MetricLearnerCV().fit(X, Y, rows=rows)


@pytest.mark.parametrize("rows", [np.arange(12.0), np.array(list("abcdefghijkl")), np.ones(12, dtype=bool)])
def test_rows_are_integers_beside_labels_too(X, rows):
    for learner in (MetricLearner(), MetricLearnerCV()):
        with pytest.raises(ValueError, match=r"rows must be integer row indices; got dtype"):
            learner.fit(X, Y, rows=rows)


def test_a_linear_metric_takes_no_similarities(X):
    metric = MetricLearner().fit(X, Y).metric_
    for call in (
        lambda: metric.distances(X, cross=X @ X.T),
        lambda: metric.distances(X, X, diag_x=np.ones(12)),
        lambda: metric.pair_distances(X, X, diag_y=np.ones(12)),
        lambda: metric.kernel(X, cross=X @ X.T),
    ):
        with pytest.raises(ValueError, match=r"similarities under a kernel; this metric is linear .* Leave them out"):
            call()


def test_projections_take_no_general_forms(X):
    form = Constraints.from_linear([np.eye(len(X))], [1.0])
    with pytest.raises(ValueError, match=r"solver='bregman' projects onto pairs, triplets and quadruplets.*Use solver"):
        MetricLearner(solver="bregman").fit(X, constraints=form)


def test_learner_knows_no_other_parameters():
    with pytest.raises(TypeError, match="unexpected keyword argument 'loss_function'"):
        MetricLearner(loss_function="logdet")


# -- data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [MetricLearner(), MetricLearnerCV(gammas=[1.0])])
def test_neither_labels_nor_constraints(X, learner):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None.*or constraints="):
        learner.fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_data_that_are_not_numbers(X, bad):
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        MetricLearner().fit(X, Y)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        MetricLearner().fit(sp.csr_array(X), constraints=SOME)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((12,), "Expected 2D array"), ((12, 3, 2), "dim 3"), ((12, 0), r"0 feature\(s\)"), ((1, 3), "1 sample")],
)
def test_shape_of_data(shape, message):
    with pytest.raises(ValueError, match=message):
        MetricLearner().fit(np.zeros(shape), constraints=SOME)


def test_labels_for_other_rows(X):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MetricLearner().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="Unknown label type"):
        MetricLearner().fit(X, np.linspace(0, 1, 12))


def test_other_number_of_columns_after_fit(X):
    learner = MetricLearner().fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but MetricLearner is expecting 3 features"):
        learner.transform(X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features, but this metric was learned on 3 features"):
        learner.metric_.distances(X[:, :2])
    with pytest.raises(ValueError, match="contains NaN"):
        learner.metric_.kernel(np.full((2, 3), np.nan))


# -- constraints -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("similar", "message"),
    [
        ([[0, -1]], r"similar must be row indices ≥ 0; got \[0, -1\].*negative indices do not wrap"),
        (
            np.array([[0, 2**64 - 1]], dtype=np.uint64),
            "similar must be row indices; got 1844.*more than",
        ),
        ([[0.0, 1.0]], r"similar must be integer row indices; got dtype float64.*astype\(int\)"),
        ([["a", "b"]], r"similar must be integer row indices; got dtype <U1"),
        ([[True, False]], r"similar must be integer row indices; got dtype bool"),
        ([0, 1], r"similar must have shape \(n, 2\), row indices; got shape \(2,\)"),
        ([[0, 1, 2]], r"similar must have shape \(n, 2\), row indices; got shape \(1, 3\)"),
        ([[[0, 1]]], r"similar must have shape \(n, 2\), row indices; got shape \(1, 1, 2\)"),
    ],
)
def test_pair_indices(similar, message):
    with pytest.raises(ValueError, match=message):
        Constraints.from_pairs(similar)
    with pytest.raises(ValueError, match=message.replace("similar", "dissimilar")):
        Constraints.from_pairs(None, similar)


def test_triplet_indices():
    with pytest.raises(ValueError, match=r"triplets must have shape \(n, 3\)"):
        Constraints.from_triplets([[0, 1]])
    with pytest.raises(ValueError, match=r"triplets must be row indices ≥ 0; got \[0, 1, -2\]"):
        Constraints.from_triplets([[0, 1, 2], [0, 1, -2]])


@pytest.mark.parametrize(("triplet", "which"), [([0, 5, 5], "b and c"), ([0, 5, 0], "a and c"), ([3, 3, 3], "b and c")])
def test_triplets_that_can_never_hold(triplet, which):
    a, b, c = triplet
    message = rf"^triplet \({a}, {b}, {c}\) can never hold: {which} are the same row; drop it\.$"
    with pytest.raises(ValueError, match=message):
        Constraints.from_triplets([[0, 1, 2], triplet, [4, 5, 4]])


@pytest.mark.parametrize("n_rows", [0, 2.5, "many", True])
def test_number_of_rows(n_rows):
    for call in (Constraints.from_pairs, Constraints.from_triplets):
        with pytest.raises(ValueError, match=r"n_rows must be a positive integer or None; got "):
            call([], n_rows=n_rows)


def test_indices_beyond_the_data(X):
    with pytest.raises(ValueError, match=r"refer to row 12, but X has 12 rows \(0 to 11\).*pass rows="):
        MetricLearner().fit(X, constraints=Constraints.from_pairs([[0, 12]]))
    with pytest.raises(ValueError, match=r"row index 12 is out of range for n_rows=12"):
        Constraints.from_pairs([[0, 12]], n_rows=12)
    with pytest.raises(ValueError, match=r"refer to row 99"):
        MetricLearner().fit(X, constraints=Constraints.from_triplets([[0, 1, 99]]))


@pytest.mark.parametrize("value", [0.0, -1.0, [1.0, 0.0]])
@pytest.mark.parametrize("name", ["upper", "lower", "weight"])
def test_bounds_and_weights_are_positive(name, value):
    hint = r" \(bounds are squared distances\)" if name != "weight" else ""
    pairs = [[0, 1], [2, 3]]
    similar, dissimilar = (None, pairs) if name == "lower" else (pairs, None)
    with pytest.raises(ValueError, match=rf"{name} must be > 0{hint}; got"):
        Constraints.from_pairs(similar, dissimilar, **{name: value})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bounds_are_finite(value):
    with pytest.raises(ValueError, match="upper must be finite; got NaN or infinity"):
        Constraints.from_pairs([[0, 1]], upper=value)
    with pytest.raises(ValueError, match="margin must be finite"):
        Constraints.from_triplets([[0, 1, 2]], margin=value)
    with pytest.raises(ValueError, match="weight must be finite"):
        Constraints.from_pairs([[0, 1]], weight=value)
    with pytest.raises(ValueError, match="bounds must be finite"):
        Constraints.from_linear([np.eye(3)], [value])


def test_margin_is_positive():
    with pytest.raises(ValueError, match=r"margin must be > 0 \(bounds are squared distances\); got -0\.1"):
        Constraints.from_triplets([[0, 1, 2]], margin=-0.1)


def test_one_number_or_one_for_each():
    with pytest.raises(ValueError, match=r"upper must be one number or 2 of them, one for each; got shape \(3,\)"):
        Constraints.from_pairs([[0, 1], [1, 2]], upper=[1, 2, 3])
    with pytest.raises(ValueError, match=r"weight must be one number or 3 of them"):
        Constraints.from_pairs([[0, 1], [1, 2]], [[3, 4]], weight=[1, 2])
    with pytest.raises(ValueError, match=r"margin must be one number or 1 of them, one for each; got 'wide'"):
        Constraints.from_triplets([[0, 1, 2]], margin="wide")
    with pytest.raises(ValueError, match=r"bounds is required"):
        Constraints.from_linear([np.eye(2)], None)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([np.ones((2, 3))], r"matrix 0 must be square, over the rows of X; got shape \(2, 3\)"),
        (
            [np.eye(2), np.array([[0, 1.0], [0, 0]])],
            r"matrix 1 must be symmetric; .* by 1\. Pass 0\.5 \* \(C",
        ),
        ([np.zeros((2, 2))], r"matrix 0 is zero: it does not constrain the metric; drop it"),
        ([np.diag([1.0, np.nan])], r"matrix 0 contains NaN or infinity"),
        ([np.eye(2), np.eye(3)], r"all matrices must be over the same rows; got sizes \[2, 3\]"),
    ],
)
def test_linear_forms(matrices, message):
    with pytest.raises(ValueError, match=message):
        Constraints.from_linear(matrices, np.ones(len(matrices)))


@pytest.mark.parametrize("sense", ["<", ["<="], ["<=", "=="]])
def test_sense(sense):
    with pytest.raises(ValueError, match=r"sense must be '<=' or '>=', one for all or one for each matrix; got"):
        Constraints.from_linear([np.eye(2), np.eye(2)], [1.0, 2.0], sense=sense)


@pytest.mark.parametrize("value", [[[0, 1]], np.array([[0, 1]]), "pairs", 3])
def test_constraints_are_constraints(X, value):
    with pytest.raises(ValueError, match=r"constraints must be a mahalo\.Constraints; got .*Constraints\.from_pairs"):
        MetricLearner().fit(X, constraints=value)
    with pytest.raises(ValueError, match=r"constraints must be a mahalo\.Constraints"):
        PairSplit(value)


def test_adding_something_else():
    with pytest.raises(TypeError, match="unsupported operand"):
        SOME + "pairs"
    with pytest.raises(ValueError, match="cannot join constraints over 4 rows with constraints over 5 rows"):
        Constraints.from_pairs([[0, 1]], n_rows=4) + Constraints.from_pairs([[0, 1]], n_rows=5)


def test_empty_constraints(X):
    for call in (MetricLearner().fit, MetricLearnerCV().fit, metric_path):
        for empty in (Constraints(), Constraints.from_pairs()):
            with pytest.raises(ValueError, match=r"the constraints are empty: there is nothing to learn from\. Make"):
                call(X, constraints=empty)


def test_an_objective_alone(X):
    pull = Constraints.target_pull(Y, X)
    for call in (MetricLearner().fit, MetricLearnerCV().fit, metric_path):
        with pytest.raises(ValueError, match="a linear objective needs constraints beside it to learn from; add some"):
            call(X, constraints=pull)


@pytest.mark.parametrize("weight", [[1e-200, 1e200], [1.0, 1e21], [1e-21, 1.0]])
def test_weights_of_a_reasonable_size(weight):
    with pytest.raises(ValueError, match=r"weight must lie between 1e-20 and 1e20; got 1e.*\. Weights multiply gamma"):
        Constraints.from_pairs([[0, 1]], [[2, 3]], weight=weight)
    with pytest.raises(ValueError, match=r"weight must lie between"):
        Constraints.from_triplets([[0, 1, 2], [0, 1, 3]], weight=weight)


# -- rows ------------------------------------------------------------------------------------------------------


def test_rows(X):
    whole = Constraints.from_pairs([[0, 1], [4, 5]], n_rows=30)
    with pytest.raises(ValueError, match=r"constraints are about 30 rows, X has 12.*pass rows="):
        MetricLearner().fit(X, constraints=whole)
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 12; got shape \(3,\)"):
        MetricLearner().fit(X, constraints=whole, rows=[0, 1, 2])
    with pytest.raises(ValueError, match=r"rows must be row indices ≥ 0; got \[-1\]"):
        MetricLearner().fit(X, constraints=whole, rows=np.arange(12) - 1)
    with pytest.raises(ValueError, match=r"rows must be integer row indices; got dtype float64"):
        MetricLearner().fit(X, constraints=whole, rows=np.arange(12.0))
    with pytest.raises(ValueError, match=r"no constraint is left to learn from \(2 mention rows that are not in X"):
        MetricLearner().fit(X, constraints=whole, rows=np.arange(12) + 10)


# -- scores ----------------------------------------------------------------------------------------------------


def test_scores_need_both_kinds(X):
    learner = MetricLearner().fit(X, Y)
    with pytest.raises(ValueError, match="score needs labels y or constraints="):
        learner.score(X)
    with pytest.raises(ValueError, match=r"score needs similar and dissimilar pairs.*got 1 and 0.*larger folds"):
        learner.score(X, constraints=Constraints.from_pairs([[0, 1]]))


def test_cross_validation(rng):
    X, y = labelled_data(rng)
    with pytest.raises(
        ValueError,
        match=r"scoring must be 'accuracy', 'map', .*, 'auc' or a callable; got 'f1'",
    ):
        MetricLearnerCV(scoring="f1").fit(X, y)
    with pytest.raises(ValueError, match=r"got 'accuracy' without y"):
        MetricLearnerCV(scoring="accuracy").fit(X, constraints=Constraints.from_labels(y))
    with pytest.raises(ValueError, match=r"n_splits must be ≥ 1 and test_size between 0 and 1; got 0 and 0\.4"):
        PairSplit(SOME, n_splits=0)
    with pytest.raises(ValueError, match=r"got 5 and 1\.5"):
        PairSplit(SOME, test_size=1.5)


def test_pair_by_pair_needs_as_many_of_each(X):
    metric = MetricLearner().fit(X, Y).metric_
    with pytest.raises(ValueError, match=r"as many of each; got 12 and 5 rows. For all against all use distances"):
        metric.pair_distances(X, X[:5])


def test_labels_must_be_one_for_each_row():
    with pytest.raises(ValueError, match=r"y must be one label for each row, a 1-D array; got shape \(3, 2\)"):
        Constraints.from_labels(np.zeros((3, 2), dtype=int))
    with pytest.raises(ValueError, match=r"strategy='neighbors' searches for nearest rows and needs X; pass X="):
        Constraints.from_labels([0, 1, 0, 1], strategy="neighbors")
