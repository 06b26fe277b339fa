"""The benchmarks' own arithmetic; nothing here needs a peer or takes time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris

from benchmarks import accuracy, adapting, contrastive, convex, loss_problems, peer_runner, problems
from benchmarks.report import Check
from benchmarks.settings import Settings
from benchmarks.tables import Table
from experiments.tabular import Half
from mahalo import Metric, losses


@pytest.mark.parametrize(
    ("value", "at_least", "is_bound", "status"),
    [
        (151.0, True, False, "PASS"),
        (149.0, True, False, "FAIL"),
        (149.0, True, True, "OPEN"),
        (151.0, True, True, "PASS"),
        (149.0, False, False, "PASS"),
        (float("nan"), True, False, "FAIL"),
        (float("nan"), False, False, "FAIL"),
    ],
)
def test_a_bound_can_pass_but_not_fail_and_nan_never_passes(value, at_least, is_bound, status):
    check = Check("ratio", value, 150.0, at_least=at_least, is_bound=is_bound)
    assert check.status == status


def test_corrected_t_test_widens_the_ordinary_one():
    corrected = accuracy.corrected_t_test
    difference = np.array([0.03, 0.01, 0.02, 0.04, 0.00, 0.02, 0.03, 0.01, 0.02, 0.05])
    ordinary = stats.ttest_1samp(difference, 0.0)
    # Without overlap it is the ordinary test; with two folds the statistic shrinks by √(1/10 / (1/10 + 1)).
    assert corrected(difference, 0.0) == pytest.approx(ordinary.pvalue)
    assert corrected(difference, 1.0) == pytest.approx(2 * stats.t.sf(ordinary.statistic / np.sqrt(11), 9))


def test_lda_is_a_rival_that_learns_from_labels():
    """One direction tells the classes apart and nine are noise: LDA finds it, the Euclidean distance does not."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 10)) * np.r_[1.0, np.full(9, 5.0)]
    X[:, 0] += 6.0 * y
    split = accuracy._Split("toy", 0, 0, Half(X[:100], y[:100], X[100:], y[100:]))
    error = {name: accuracy._evaluate(accuracy.METHODS[name], split).error for name in ("Euclidean", "LDA")}
    assert error["LDA"] <= 0.02 < 0.1 < error["Euclidean"]


def test_the_default_is_judged_by_its_metric_and_says_which_space_it_chose():
    """`transform` is approximate where the metric is of a kernel; `Half` asks a `Metric` for its distances."""
    X, y = load_iris(return_X_y=True)
    learned = accuracy.METHODS[accuracy.OURS](X[::3], y[::3])
    assert isinstance(learned.distance, Metric) and learned.seconds > 0
    assert learned.space in accuracy.SPACES


def scores_of(table, ours, earlier):
    errors = {method: np.array([0.20, 0.21, 0.20, 0.21]) for method in accuracy.METHODS}
    errors[accuracy.OURS] = np.array(ours)
    earlier = None if earlier is None else np.array(earlier)
    return accuracy._Scores(table, 40, 40, 1.0, errors, {}, Counter(rbf=4), earlier)


def checks_of(scores):
    mean_error = {method: float(np.mean([s.mean(method) for s in scores])) for method in accuracy.METHODS}
    mean_rank = {method: 1.0 if method == accuracy.OURS else 2.0 for method in accuracy.METHODS}
    return {check.name: check for check in accuracy._checks(scores, mean_error, mean_rank)}


def test_accuracy_is_held_to_every_rival_and_to_the_earlier_default():
    curved = scores_of("ionosphere", [0.05, 0.06, 0.05, 0.06], [0.15, 0.16, 0.15, 0.16])
    plain = scores_of("iris", [0.09, 0.10, 0.09, 0.10], [0.10, 0.10, 0.10, 0.10])
    checks = checks_of([curved, plain])
    assert list(checks) == [
        "mean error, against LDA",
        "mean error, against NCA",
        "mean error, against LMNN",
        "mean rank, against the best other (Euclidean)",
        "tables significantly worse than Euclidean",
        "mean error over that of the earlier default",
        "mean error without ionosphere over that of the earlier default",
        "tables significantly worse than the earlier default",
    ]
    assert all(check.status == "PASS" for check in checks.values())
    ratio = checks["mean error over that of the earlier default"]
    assert ratio.value == pytest.approx((0.055 + 0.095) / (0.155 + 0.1)) and ratio.required == 0.85
    without = checks["mean error without ionosphere over that of the earlier default"]
    assert without.value == pytest.approx(0.95) and without.required == 0.95


def test_a_table_that_became_worse_is_named_and_equal_errors_do_not_pass():
    worse = scores_of("iris", [0.30, 0.31, 0.30, 0.31], [0.10, 0.11, 0.10, 0.12])
    checks = checks_of([worse])
    for name in ("tables significantly worse than Euclidean", "tables significantly worse than the earlier default"):
        assert checks[name].status == "FAIL" and checks[name].note == "iris"
    equal = checks_of([scores_of("iris", [0.20, 0.21, 0.20, 0.21], None)])
    assert equal["mean error, against LDA"].status == "FAIL"
    assert not any("earlier" in name for name in equal)
    assert "no record on these splits of iris" in accuracy._earlier_note([scores_of("iris", [0.2] * 4, None)])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_earlier_default_is_known_on_the_splits_it_was_judged_on(seed):
    iris = Table("iris", *load_iris(return_X_y=True))
    splits = list(accuracy._splits(iris, 2, seed))
    baseline = np.array([accuracy._evaluate(accuracy.METHODS["Euclidean"], split).error for split in splits])
    earlier = accuracy._earlier_errors("iris", seed, baseline)
    assert earlier.shape == (4,) and 0 < earlier.mean() < baseline.mean()
    assert accuracy._earlier_errors("iris", seed, baseline + 0.01) is None
    assert accuracy._earlier_errors("iris", seed + 2, baseline) is None
    assert accuracy._earlier_errors("another", seed, baseline) is None


def test_corrected_t_test_without_variance():
    corrected = accuracy.corrected_t_test
    assert corrected(np.zeros(10), 1.0) == 1.0
    assert corrected(np.full(10, 0.5), 1.0) == 0.0
    assert corrected(np.array([0.5]), 1.0) == 1.0


def test_objective_of_the_identity_is_the_slack_alone():
    problem = problems.pair_problem(*load_iris(return_X_y=True), pairs_per_class=20)
    value = problems.primal_of(problem.as_stated(gamma=2.0), np.eye(4))
    expected = 0.0
    for pairs, bound, sign in ((problem.similar, problem.upper, 1), (problem.dissimilar, problem.lower, -1)):
        for i, j in pairs:
            ratio = np.sum((problem.X[i] - problem.X[j]) ** 2) / bound
            if sign * (ratio - 1) > 0:
                expected += 2.0 * (ratio - np.log(ratio) - 1)
    assert value == pytest.approx(expected)
    assert value > 0


def test_what_a_task_solves_is_what_matrices_are_judged_by():
    problem = problems.pair_problem(1e3 * load_iris().data, load_iris().target, pairs_per_class=20)
    root = np.random.default_rng(0).standard_normal((4, 6))
    stated, solved = problem.as_stated(gamma=2.0), problem.task().problem.with_gamma(2.0)
    for F in (np.eye(4), root @ root.T / 6):
        assert problems.primal_of(solved, F) == pytest.approx(problems.primal_of(stated, F), rel=1e-12)


def test_simulated_classes_are_reproducible_and_standard():
    simulate = problems.simulated_classes
    X, y = simulate(30, n_samples=200)
    again, _ = simulate(30, n_samples=200)
    assert np.array_equal(X, again)
    assert np.allclose(X.std(axis=0), 1.0)
    assert set(np.bincount(y)) == {20}


def test_time_limit_stops_a_fit_and_keeps_its_variables():

    def endless():
        n = 0
        while True:
            n += 1

    seconds, stopped = peer_runner.stopped_after(0.05, endless)
    assert 0.05 <= seconds < 5.0
    assert peer_runner.local_variables(stopped, "endless")["n"] > 0
    assert peer_runner.local_variables(stopped, "no such function") == {}
    assert peer_runner.stopped_after(5.0, lambda: None)[1] is None


def test_cached_outcomes_are_bound_to_their_data(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 2)), np.arange(8) % 2
    split = accuracy._Split("toy", 0, 0, Half(X, y, X, y))
    other = accuracy._Split("toy", 0, 0, Half(X + 1, y, X, y))
    cache = accuracy._Cache(tmp_path, fresh=False)
    outcome = cache.put("NCA", split, accuracy._Outcome(0.25, 1.0))
    assert cache.get("NCA", split) == outcome
    assert cache.get("NCA", other) is None
    assert cache.get(accuracy.OURS, split) is None
    assert accuracy._Cache(tmp_path, fresh=True).get("NCA", split) is None


@pytest.mark.parametrize("loss", ["Frobenius", "VonNeumann", "SDPFrobenius", "SDPLogDet"])
def test_cvxpy_is_given_the_problem_that_is_certified(loss):
    cp = pytest.importorskip("cvxpy")
    iris = Table("iris", *load_iris(return_X_y=True))
    task = loss_problems.pose_table(iris, "pairs", "features", getattr(losses, loss)(), per_class=20)
    problem = task.problem.with_gamma(3.0)
    F, objective = convex._statement(cp, problem)
    root = np.random.default_rng(0).standard_normal((4, 6))
    F.value = root @ root.T / 6
    assert float(objective.value) == pytest.approx(problems.primal_of(problem, F.value), rel=1e-9)


def test_a_sample_has_every_class_and_no_row_twice():
    y = np.repeat([0, 1, 2], [1000, 300, 5])
    kept = loss_problems._sample(y, 80)
    assert len(np.unique(kept)) == len(kept) <= 90
    assert (np.bincount(y[kept]) >= 4).all()


def test_contrastive_loss_has_the_gradient_that_differences_see():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 4)), np.array([0] * 4 + [1] * 4 + [2] * 3 + [3])  # the last row is alone
    targets = contrastive._targets(y).astype(np.float64)
    a = (np.eye(4) + 0.1 * rng.standard_normal((4, 4))).ravel()

    def value(b):
        return contrastive.contrastive_loss(b, X, targets, 0.2, 0.03)[0]

    steps = 1e-6 * np.eye(16)
    differences = [(value(a + step) - value(a - step)) / 2e-6 for step in steps]
    assert contrastive.contrastive_loss(a, X, targets, 0.2, 0.03)[1] == pytest.approx(differences, rel=1e-5, abs=1e-8)


def test_contrastive_map_brings_classes_together():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = np.column_stack([np.eye(3)[y], 2 * rng.standard_normal((60, 3))]).astype(np.float32)
    A = contrastive.contrastive_map(X, y, 0.1, 0.003)
    assert contrastive._held_out(A, X, y) > contrastive._held_out(np.eye(6), X, y) + 0.2


def test_random_pairs_are_what_they_are_said_to_be():
    y = np.arange(400) % 77
    similar, dissimilar = adapting.random_pairs(y, 50, seed=0)
    assert similar.shape == dissimilar.shape == (50, 2)
    assert (y[similar[:, 0]] == y[similar[:, 1]]).all() and (similar[:, 0] != similar[:, 1]).all()
    assert (y[dissimilar[:, 0]] != y[dissimilar[:, 1]]).all()


def test_leads_are_means_over_draws_of_paired_differences():
    ours, theirs = np.zeros((3, 4)), np.zeros((3, 4))
    ours[0] = [1, 1, 0, 1]
    outcome = adapting._Outcome("5", {adapting.OURS: (ours, theirs), adapting.LDA: (theirs, theirs)}, ())
    difference, half = outcome.lead(adapting.LDA, "P@1")
    assert difference == pytest.approx(0.75 / 2)
    assert half == pytest.approx(1.96 * np.sqrt(0.75 * 0.25) / 2 / 2)
    assert adapting._not_below(outcome, adapting.LDA, "P@1", "few").status == "PASS"


def test_without_its_data_adapting_says_why_it_did_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MAHALO_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(adapting, "data_folder", lambda: None)
    report = adapting.run(Settings(quick=True))
    assert not report.checks
    assert report.notes[0].startswith("skipped:")


def test_suspects_says_what_it_could_not_run(monkeypatch, capsys):
    from benchmarks import suspects

    monkeypatch.setattr(suspects, "data_folder", lambda: None)
    assert [name for name, *_ in suspects._sets(quick=False)] == ["wine", "digits"]
    assert "NOT RUN: pendigits and banking77" in capsys.readouterr().err
