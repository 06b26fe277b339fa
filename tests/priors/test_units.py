"""Priors from the data do not depend on its units: X → s X leaves the matrix, but for s, as it was.

Matrices of trace n_features have no unit, so that distances are s times as long; those of "diagonal" and "covariance"
have that of 1/s², so that distances stay.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data
from hypothesis import given
from hypothesis import strategies as st

from mahalo import Constraints, MetricLearner
from mahalo.basis import BetweenBasis
from mahalo.linalg import within_class
from mahalo.priors import Covariance, Prior, Supervision, Within
from mahalo.rows import InMemoryRows

seeds = st.integers(0, 2**32 - 1)
SHRUNK = {
    "within": Within(),
    "within more": Within(0.1, extra=0.3),
    "all": Covariance("auto"),
    "all more": Covariance(0.2),
}
OTHERS = {"identity": "identity", "diagonal": "diagonal", "covariance": "covariance"}
UNITS = [1e-140, 1e-100, 1e-80, 1e78, 1e100, 1e140]


def similar_pairs(y):
    i, j = np.triu_indices(len(y), 1)
    return np.stack([i, j], axis=1)[y[i] == y[j]]


@given(
    seeds,
    st.integers(-470, 470),
    st.sampled_from(sorted(SHRUNK)),
    st.sampled_from(["labels", "pairs"]),
    st.booleans(),
)
def test_powers_of_two_change_no_bit_of_a_prior(seed, exponent, prior, source, sparse):
    X, y = labelled_data(np.random.default_rng(seed))
    known = Supervision(codes=y) if source == "labels" else Supervision(similar=similar_pairs(y))
    as_kept = sp.csr_array if sparse else np.asarray
    one = Prior.of(SHRUNK[prior], InMemoryRows(as_kept(X)), known)
    known.scatter_cache.clear()
    two = Prior.of(SHRUNK[prior], InMemoryRows(as_kept(np.ldexp(X, exponent))), known)
    assert 0 < one.shrinkage <= 1 or SHRUNK[prior].shrinkage != "auto"
    assert two.shrinkage == one.shrinkage
    np.testing.assert_array_equal(two.root, one.root)
    assert two.level == np.ldexp(one.level, 2 * exponent)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("source", ["labels", "pairs"])
def test_diagonal_plus_low_rank_in_any_unit(rng, monkeypatch, unit, source):
    monkeypatch.setattr(within_class, "MAX_SPARSE_COLUMNS", 10)
    X = sp.random_array((60, 40), density=0.2, random_state=rng, format="csr")
    y = np.arange(60) % 3
    for prior in SHRUNK.values():
        one, two = (
            Prior.of(
                prior,
                InMemoryRows(rows),
                Supervision(codes=y) if source == "labels" else Supervision(similar=similar_pairs(y)),
            )
            for rows in (X, X * unit)
        )
        assert one.directions is not None
        assert two.shrinkage == pytest.approx(one.shrinkage, rel=1e-9)
        np.testing.assert_allclose(two.compose(np.eye(40)), one.compose(np.eye(40)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("source", ["labels", "pairs"])
@pytest.mark.parametrize("prior", [*OTHERS, *SHRUNK])
def test_learned_distances_in_any_unit(wine, prior, source, sparse, unit):
    X, y = wine
    X, y = X[::4], y[::4]
    chosen = (OTHERS | SHRUNK)[prior]

    def distances(X):
        learner = MetricLearner(prior=chosen, pairs_per_class=20, tol=1e-10)
        rows = sp.csr_array(X) if sparse else X
        if source == "labels":
            return learner.fit(rows, y).metric_.distances(X)
        drawn = Constraints.from_labels(y, pairs_per_class=20, random_state=0).pairs
        pairs = Constraints.from_pairs(drawn.index[drawn.sign > 0], drawn.index[drawn.sign < 0])
        return learner.fit(rows, constraints=pairs).metric_.distances(X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "columns of X have standard deviations")
        one, two = distances(X), distances(X * unit)
    expected = one if prior in ("diagonal", "covariance") else one * unit
    np.testing.assert_allclose(two, expected, rtol=0, atol=1e-9 * expected.max())


@pytest.mark.parametrize("unit", [1e-140, 1e-100, 1e100, 1e140])
@pytest.mark.parametrize("from_labels", [True, False])
def test_directions_between_classes_in_any_unit(wine, from_labels, unit):
    X, y = wine
    given = {"y": y} if from_labels else {"constraints": Constraints.from_pairs(similar_pairs(y)[::20], [[0, 177]])}
    for prior in ("identity", "within"):
        learner = MetricLearner(prior=prior, basis=BetweenBasis(), tol=1e-10, random_state=0)
        one = learner.fit(X, **given).metric_.distances(X)
        two = learner.fit(X * unit, **given).metric_.distances(X * unit)
        np.testing.assert_allclose(two, one * unit, rtol=0, atol=1e-9 * one.max() * unit)
