"""The experiments on tables of numbers: their arithmetic, their verdicts, and that they run."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from builders import labelled_data
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mutual_info_score

from experiments import clustering, timing, uci
from experiments.data import Table
from experiments.outcome import Measurement, Settings
from experiments.protocol import Tally
from experiments.tabular import Half, Stops, information_gain, sampled
from mahalo import Constraints
from mahalo.features import LocalMap, QuadraticMap


@pytest.fixture
def quick(tmp_path) -> Settings:
    return Settings(quick=True, seed=0, cache=tmp_path)


@pytest.fixture
def real_data(data_dir, monkeypatch):
    monkeypatch.setenv("MAHALO_DATA", str(data_dir))


def silent(stage: str, done: int, total: int) -> None:
    assert 0 <= done <= total


# -- tables cut in two -------------------------------------------------------------------------------------------------


def test_information_gain_is_mutual_information_with_the_bins(rng):
    y = rng.integers(0, 3, 300)
    X = np.column_stack([y, rng.integers(0, 4, 300), 10 * y + rng.integers(0, 2, 300), np.zeros(300)])
    gain = information_gain(X, y, n_bins=50)
    for k in range(4):
        assert gain[k] == pytest.approx(mutual_info_score(X[:, k], y), abs=1e-12)


def test_most_telling_features_are_chosen_on_the_training_half(rng):
    X = rng.standard_normal((80, 6))
    y = np.arange(80) % 2
    train, test = np.arange(40), np.arange(40, 80)
    X[train, 4] += 5 * y[train]  # telling where it is learned from
    X[test, 1] += 50 * y[test]  # telling only where it is judged
    half = Half.of(Table("made up", X, y, ("0", "1"), ""), train, test)
    kept = half.most_telling(1)
    np.testing.assert_array_equal(kept.X_train[:, 0], half.X_train[:, 4])
    np.testing.assert_array_equal(kept.X_test[:, 0], half.X_test[:, 4])


def test_units_are_those_of_the_training_half(rng):
    X, y = 7 + 3 * rng.standard_normal((50, 2)), np.arange(50) % 2
    half = Half.of(Table("made up", X, y, ("0", "1"), ""), np.arange(20), np.arange(20, 50))
    np.testing.assert_allclose([half.X_train.mean(axis=0), half.X_train.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)
    np.testing.assert_allclose(half.X_test, (X[20:] - X[:20].mean(axis=0)) / X[:20].std(axis=0))


def test_samples_keep_the_shares_of_the_classes(rng):
    y = np.repeat([0, 1, 2], [100, 200, 300])
    table = Table("made up", rng.standard_normal((600, 2)), y, ("0", "1", "2"), "")
    assert sampled(table, 600, 0) is table
    assert np.bincount(sampled(table, 60, 0).y).tolist() == [10, 20, 30]


def test_fits_that_stop_early_are_counted():
    stops = Stops()
    with stops.watching("one"):
        warnings.warn("stopped", ConvergenceWarning, stacklevel=1)
    for method in ("one", "other"):
        with stops.watching(method):
            warnings.warn("equal rows", UserWarning, stacklevel=1)
    assert stops.notes() == ("one stopped at its limit of steps before it had converged in 1 of 2 fits.",)


# -- uci ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", uci.METHODS)
def test_every_method_learns_iris(method):
    X, y = load_iris(return_X_y=True)
    table = Table("iris", X, y, ("0", "1", "2"), "")
    half = Half.of(table, np.arange(0, 150, 2), np.arange(1, 150, 2))
    with Stops().watching(method):
        assert half.error(uci.METHODS[method], 0) <= 0.2


def shells(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A ball inside a shell in six dimensions: no linear metric tells them apart, a curved one does."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 6))
    return X * ((1 + 2 * y) / np.linalg.norm(X, axis=1))[:, None], y


@pytest.mark.parametrize("method", ["LogDet Linear", "LogDet Within", "LogDet neighbours", "linear", "LDA's space"])
def test_linear_methods_learn_one_matrix_where_a_curved_space_would_win(method, rng):
    metric = uci.METHODS[method](*shells(80, rng), 0)
    assert metric.is_linear and metric.features is None and metric.matrix.shape == (6, 6)


def test_methods_of_one_space_learn_in_it(rng):
    X, y = shells(80, rng)
    for method, features in (("quadratic", QuadraticMap), ("local", LocalMap)):
        assert isinstance(uci.METHODS[method](X, y, 0).features, features)
    assert not uci.METHODS["RBF"](X, y, 0).is_linear
    assert not uci.METHODS["MetricLearnerCV"](X, y, 0).is_linear


def test_quadratic_forms_products_of_some_components_of_wide_tables(rng):
    X = rng.standard_normal((60, 20))
    metric = uci.METHODS["quadratic"](X, np.arange(60) % 2, 0)
    assert metric.features.transform(X).shape == (60, 20 + 10 * 11 // 2)


def test_choosing_the_space_is_compared_with_rivals_and_with_single_spaces():
    def found(default: float) -> list[Measurement]:
        values = dict.fromkeys(uci.RIVALS, 0.3) | {"LDA": 0.2} | dict.fromkeys(uci.SPACES, 0.25) | {"local": 0.15}
        tables = [Measurement("a", m, "error", v) for m, v in (values | {uci.DEFAULT: default}).items()]
        curve = [Measurement(uci.PIXELS, "LDA", "error", 0.0, x=5.0)]  # has no part in it
        return [*tables, *curve]

    for default, holds in ((0.1, [True, True]), (0.16, [True, False]), (0.21, [False, False])):
        verdicts = list(uci._choice_pays(found(default)))
        assert [v.holds for v in verdicts] == holds
        assert [v.detail.split(", ")[1] for v in verdicts] == ["LDA 0.2000", "local 0.1500"]


def errors(name: str, half_width: float, **value: float) -> list[Measurement]:
    names = {"linear": "LogDet Linear", "gaussian": "LogDet Gaussian"}
    listed = dict.fromkeys((*uci.IN_FIGURE, *uci.RIVALS), 0.5) | {names.get(k, k): v for k, v in value.items()}
    return [Measurement(name, method, "error", v, half_width) for method, v in listed.items()]


def test_the_verdict_counts_tables():
    won = errors("won", 0.01, linear=0.10, gaussian=0.30, MCML=0.20)
    close = errors("close", 0.05, linear=0.30, gaussian=0.24, LMNN=0.20)
    lost = errors("lost", 0.03, linear=0.30, gaussian=0.24, LMNN=0.20)
    verdict = uci.best_or_close([*won, *close, *lost], "tables", ["won", "close", "lost"])
    expected = "2 of 3, lowest on 1; not on lost (LogDet Gaussian 0.240 ± 0.030, LMNN 0.200"
    assert verdict.holds and verdict.detail.startswith(expected)
    assert not uci.best_or_close([*won, *lost], "tables", ["won", "lost"]).holds


@pytest.mark.slow
def test_uci_runs(quick, real_data):
    outcome = uci.run(quick, silent)
    tables = {m.dataset for m in outcome.measurements if m.x is None}
    assert tables == {"iris", "wine"}
    assert {m.method for m in outcome.measurements if m.x is None} == set(uci.METHODS)
    assert all(0 <= m.value < 0.6 for m in outcome.measurements)
    assert {m.x for m in outcome.measurements if m.dataset == uci.PIXELS} == {5, 20}
    assert len(outcome.verdicts) == 6


# -- clustering --------------------------------------------------------------------------------------------------------


def test_matched_error_is_the_best_of_all_matchings(rng):
    for _ in range(20):
        y, labels = rng.integers(0, 3, (2, 30))
        best = min(np.mean(np.array(order)[labels] != y) for order in itertools.permutations(range(3)))
        assert clustering.matched_error(y, labels) == pytest.approx(best)
        assert clustering.majority_error(y, labels) <= best + 1e-12


def test_errors_of_few_clusters():
    y, together = np.array([0, 0, 0, 1]), np.zeros(4, dtype=int)
    for error in (clustering.matched_error, clustering.majority_error):
        assert error(y, together) == pytest.approx(0.25)
        assert error(y, 1 - y) == 0.0
    assert clustering.pairwise_error(y, together) == pytest.approx(3 / 6)


def test_pairs_are_of_the_training_half_and_follow_the_classes(rng):
    _, y = labelled_data(rng)
    train = np.arange(0, 60, 2)
    pairs = clustering.draw_pairs(train, 50, rng)
    assert set(pairs.ravel()) <= set(train)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 50
    constraints = clustering.constrained(pairs, y)
    i, j = constraints.pairs.index.T
    np.testing.assert_array_equal(constraints.pairs.sign > 0, y[i] == y[j])
    assert isinstance(constraints, Constraints) and constraints.n_constraints == 50


def test_pairs_choose_among_the_starts_of_plain_k_means(rng):
    """Four corners of a square cut into halves: a pair says which way, or, met by both cuts, leaves it to inertia."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    X = np.repeat(corners, 10, axis=0) + 1e-3 * rng.standard_normal((40, 2))

    def inertia(similar: int) -> float:
        constraints = Constraints.from_pairs(similar=[[0, similar]], n_rows=40)
        labels = clustering.METHODS[clustering.BY_PAIRS](X, 2, constraints, 0)
        assert labels[0] == labels[similar] != labels[30]
        return sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in (0, 1))

    upright, lying, either = (inertia(similar) for similar in (10, 20, 1))
    assert upright != pytest.approx(lying, rel=1e-9) and either == pytest.approx(min(upright, lying), rel=1e-9)


def measured(**changes: float) -> list[Measurement]:
    """Errors of all methods on both tables, .3 but for ours; changes are on Ionosphere."""
    error = dict.fromkeys(("k-means", *clustering.METHODS), 0.3) | {"LogDet Linear": 0.1, "LogDet Gaussian": 0.1}
    return [
        *(Measurement("Digits-389", method, clustering.ERROR, value) for method, value in error.items()),
        *(Measurement("Ionosphere", method, clustering.ERROR, value) for method, value in (error | changes).items()),
    ]


def test_clusterings_are_judged_against_every_rival():
    assert all(verdict.holds for verdict in clustering._verdicts(measured()))
    for rival in ("k-means", clustering.BY_PAIRS, *clustering.HMRF):
        *beside_paper, smaller = clustering._verdicts(measured(**{rival: 0.05}))
        assert all(verdict.holds for verdict in beside_paper) and not smaller.holds
        assert f"{rival}: 0.050" in smaller.detail
    assert all("those of its LogDet Linear" in verdict.claim for verdict in beside_paper)


@pytest.mark.slow
def test_clustering_runs_and_knowledge_helps(quick, real_data):
    outcome = clustering.run(quick, silent)
    error = {(m.dataset, m.method): m for m in outcome.measurements if m.measure == clustering.ERROR}
    for name in ("Ionosphere", "Digits-389"):
        assert error[name, "LogDet Gaussian"].value < error[name, "k-means"].value - 0.1
        assert error[name, "LogDet Linear"].x == 50.0
        assert all(error[name, m].published for m in ("k-means", "LogDet Linear", *clustering.HMRF))
    assert outcome.verdicts[0].holds


# -- timing ------------------------------------------------------------------------------------------------------------


def test_published_ratios_are_those_the_paper_speaks_of():
    assert round(timing._paper_ratios("MCML")[0]) == 383
    assert round(timing._paper_ratios("LMNN")[0]) == 10


def test_ratios_are_those_of_mean_seconds_in_every_row():
    """Three runs of 1, 1 and 4 seconds beside 2, 6 and 4: 12/6, where the mean of the ratios is 3."""
    tally = Tally()
    for ours, theirs in ((1.0, 2.0), (1.0, 6.0), (4.0, 4.0)):
        for method in timing.METHODS:
            tally.add("one", method, timing.SECONDS, ours if method == timing.OURS else theirs)
            tally.add("other", method, timing.SECONDS, 1.0)
    value = {(m.dataset, m.method): m.value for m in timing._ratios(tally, ("one", "other"))}
    assert value["one", "MCML"] == value[timing.LARGEST, "MCML"] == pytest.approx(2.0)
    assert value["other", "MCML"] == pytest.approx(1.0) and value[timing.MEAN, "MCML"] == pytest.approx(2**0.5)
    assert ("one", timing.OURS) not in value


@pytest.mark.slow
def test_timing_runs(quick, real_data):
    outcome = timing.run(quick, silent)
    value = {(m.dataset, m.method, m.measure): m for m in outcome.measurements}
    ratios = [value[name, "MCML", timing.RATIO].value for name in ("ionosphere", "wdbc")]
    largest = value[timing.LARGEST, "MCML", timing.RATIO]
    of_means = [
        value[name, "MCML", timing.SECONDS].value / value[name, timing.OURS, timing.SECONDS].value
        for name in ("ionosphere", "wdbc")
    ]
    assert ratios == pytest.approx(of_means) and largest.value == max(ratios)
    assert largest.published == pytest.approx(19.8 / 0.0517)
    assert value[timing.MEAN, "NCA", timing.RATIO].published is None
