"""Metrics learned on standardised columns measure rows as they come; what is noted about them is in the file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import labelled_data

import mahalo
from mahalo import MetricLearner
from mahalo.metric import Scaling, absorb_scaling
from mahalo.priors import Within

KINDS = {
    "identity": {},
    "diagonal": {"prior": "diagonal"},
    "covariance": {"prior": "covariance"},
    "within": {"prior": Within()},
    "basis": {"basis": 2, "residual": 0.3},
    "components": {"n_components": 2},
    "cosine": {"normalize": True},
    "poly": {"kernel": "poly", "kernel_params": {"degree": 2}},
    "rbf": {"kernel": "rbf"},
}


@pytest.fixture(params=KINDS, ids=str)
def learned(request, rng):
    """Raw rows, the same standardised, and what was learned on these."""
    X, y = labelled_data(rng, n=40, d=4)
    X = X * [1.0, 1e3, 1e-2, 50.0] + [0.0, 5.0, -1.0, 1e4]
    scaling = Scaling.of(X)
    Z = scaling.apply(X)
    return X, Z, scaling, MetricLearner(**KINDS[request.param]).fit(Z, y).metric_


def test_rows_as_they_come_are_measured_like_standardised_ones(learned):
    X, Z, scaling, metric = learned
    raw = absorb_scaling(metric, scaling)
    np.testing.assert_allclose(raw.distances(X), metric.distances(Z), atol=1e-7)
    np.testing.assert_allclose(raw.pair_distances(X[:5], X[5:10]), metric.pair_distances(Z[:5], Z[5:10]), rtol=1e-6)
    np.testing.assert_array_equal(raw.kneighbors(X, X, 5)[1], metric.kneighbors(Z, Z, 5)[1])
    moved = raw.transform(X) - metric.transform(Z)
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-6)


def test_only_where_the_mean_matters_is_it_kept(learned):
    _, _, scaling, metric = learned
    raw = absorb_scaling(metric, scaling)
    folded = isinstance(metric.coordinates, mahalo.coordinates.LinearCoordinates) and not metric.normalize
    assert (raw.scaling is None) == folded


def test_scaling_and_notes_are_in_the_file(learned, tmp_path):
    X, _, scaling, metric = learned
    raw = absorb_scaling(metric, scaling)
    raw = dataclasses.replace(raw, about={"columns": ["a", "b", "ü", "d"], "gap": 1e-5})
    raw.save(tmp_path / "m.safetensors")
    loaded = mahalo.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.transform(X), raw.transform(X))
    assert loaded.about == raw.about


def test_notes_that_files_cannot_hold_are_refused(learned, tmp_path):
    metric = dataclasses.replace(learned[3], about={"gap": float("nan")})
    with pytest.raises(ValueError, match="about"):
        metric.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_notes_may_hold_numpys_scalars_and_small_arrays(learned, tmp_path):
    about = {"rows": np.int64(3), "gap": np.float32(0.5), "sure": np.bool_(True), "counts": np.array([2, 1])}
    dataclasses.replace(learned[3], about=about).save(tmp_path / "m.safetensors")
    expected = {"rows": 3, "gap": 0.5, "sure": True, "counts": [2, 1]}
    assert mahalo.load(tmp_path / "m.safetensors").about == expected
    for value in (np.zeros(20_000), 1j, object()):
        with pytest.raises(ValueError, match="about"):
            dataclasses.replace(learned[3], about={"value": value}).save(tmp_path / "m.safetensors")


def test_columns_that_never_change_keep_their_scale():
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    scaling = Scaling.of(X)
    assert scaling.scale[1] == 1.0
    np.testing.assert_array_equal(scaling.apply(X), [[-1.0, 0.0], [1.0, 0.0]])


def test_single_precision_stays_single():
    X = np.array([[1e6, 1.0], [1e6 + 2, 3.0]], dtype=np.float32)
    assert Scaling.of(X).apply(X).dtype == np.float32


def test_half_precision_is_scaled_to_single(rng):
    X = 100 + rng.standard_normal((50, 3))
    scaling = Scaling.of(X)
    assert scaling.apply(X.astype(np.float16)).dtype == np.float32
    assert scaling.apply(X.astype(np.float32)).dtype == np.float32
    assert scaling.apply(X).dtype == np.float64
