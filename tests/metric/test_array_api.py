"""Arrays of other libraries: the same numbers, of their kind."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from mahalo import MetricLearner
from mahalo.metric import Scaling, array_api

KINDS = ("torch", "array_api_strict")
FORMS = {
    "full": {},
    "normalised": {"normalize": True, "prior": "covariance"},
    "low rank": {"basis": 3},
    "leading": {"n_components": 3},
}


def learned(**options):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 6)), rng.integers(0, 3, 50)
    return MetricLearner(**options).fit(X + y[:, None], y).metric_, X


def made(kind, X):
    return pytest.importorskip(kind).asarray(X.tolist(), dtype=getattr(pytest.importorskip(kind), str(X.dtype)))


def back(array):
    return np.from_dlpack(array)


@pytest.fixture(params=["by NumPy", "by its own functions"])
def way(request, monkeypatch):
    """Rows that NumPy may look at, and rows that it may not, as on another device."""
    if request.param == "by its own functions":
        monkeypatch.setattr(array_api, "_measure_with_numpy", lambda *arguments: None)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_numbers_of_the_same_kind(kind, form, dtype, scaled):
    metric, X = learned(**form)
    if scaled:
        metric = dataclasses.replace(metric, scaling=Scaling(np.arange(6.0), 1.0 + np.arange(6.0)))
    X = X.astype(dtype)
    A, B = made(kind, X[:20]), made(kind, X[20:40])
    tol = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-7}
    for ours, theirs in (
        (metric.transform(X[:20]), metric.transform(A)),
        (metric.distances(X[:20], X[20:40]), metric.distances(A, B)),
        (metric.distances(X[:20]), metric.distances(A)),
        (metric.distances(X[:20], squared=True), metric.distances(A, squared=True)),
        (metric.pair_distances(X[:20], X[20:40]), metric.pair_distances(A, B)),
    ):
        assert type(theirs) is type(A) and str(theirs.dtype).endswith(str(ours.dtype))
        np.testing.assert_allclose(back(theirs), ours, **tol)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype, sizes", [("float32", (1e-25, 1e25)), ("float64", (1e-170, 1e170))])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_whose_squares_leave_the_range_of_floats(kind, dtype, sizes):
    metric, X = learned()
    X = X.astype(dtype)
    cosine = dataclasses.replace(metric, normalize=True)
    tol = 1e-5 if dtype == "float32" else 1e-9
    for size in sizes:
        A = made(kind, X * X.dtype.type(size))
        T, D = back(cosine.transform(A)), back(metric.distances(A[:20, :], A[20:, :]))
        np.testing.assert_allclose(np.linalg.norm(T, axis=1), 1.0, rtol=tol)
        np.testing.assert_allclose(T, cosine.transform(X), atol=tol)
        np.testing.assert_allclose(D / size, metric.distances(X[:20], X[20:]), rtol=tol)
        np.testing.assert_allclose(back(metric.distances(A)) / size, metric.distances(X), rtol=tol)


@pytest.mark.usefixtures("way")
def test_no_rows_and_equal_rows():
    metric, X = learned()
    A = made("array_api_strict", X)
    assert metric.distances(A[:0, :], A).shape == (0, 50)
    np.testing.assert_array_equal(back(metric.distances(A[:1, :])), [[0.0]])
    zero = dataclasses.replace(metric, normalize=True).transform(0.0 * A)
    np.testing.assert_array_equal(back(zero), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_memory_are_measured_by_numpy(kind):
    """To the last digit, and so without the cost of a library's own functions."""
    metric, X = learned()
    A, B = made(kind, X[:8]), made(kind, X[8:16])
    np.testing.assert_array_equal(back(metric.distances(A, B)), metric.distances(X[:8], X[8:16]))
    np.testing.assert_array_equal(back(metric.distances(A)), metric.distances(X[:8]))
    np.testing.assert_array_equal(back(metric.transform(A)), metric.transform(X[:8]))
    np.testing.assert_array_equal(back(metric.pair_distances(A, B)), metric.pair_distances(X[:8], X[8:16]))


def test_the_map_is_brought_to_a_device_once(monkeypatch):
    metric, X = learned()
    made_maps = []
    linear_map = type(metric).linear_map

    def counted(self):
        made_maps.append(self)
        return linear_map(self)

    monkeypatch.setattr(array_api, "_measure_with_numpy", lambda *arguments: None)
    monkeypatch.setattr(type(metric), "linear_map", counted)
    A = made("array_api_strict", X)
    for _ in range(3):
        metric.distances(A[:8, :], A[8:16, :])
    assert len(made_maps) == 1


def test_copies_and_pickles_hold_no_arrays_of_other_kinds(monkeypatch):
    metric, X = learned()
    monkeypatch.setattr(array_api, "_measure_with_numpy", lambda *arguments: None)
    expected = back(metric.distances(made("array_api_strict", X[:8])))
    assert metric.map_constants.placed
    for again in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert not again.map_constants.placed
        np.testing.assert_array_equal(back(again.distances(made("array_api_strict", X[:8]))), expected)


def test_gradients_pass_through():
    torch = pytest.importorskip("torch")
    metric, X = learned()
    A = torch.tensor(X[:5], requires_grad=True)
    metric.pair_distances(A, torch.tensor(X[5:10]), squared=True).sum().backward()
    np.testing.assert_allclose(A.grad.numpy(), 2.0 * (X[:5] - X[5:10]) @ metric.matrix, atol=1e-8)


def test_what_is_refused():
    torch = pytest.importorskip("torch")
    metric, X = learned()
    with pytest.raises(ValueError, match="one kind"):
        metric.distances(torch.tensor(X), X)
    with pytest.raises(ValueError, match=r"shape \(50, 5\)"):
        metric.transform(torch.tensor(X[:, :5]))
    with pytest.raises(ValueError, match="NaN"):
        metric.transform(torch.tensor(X) * float("nan"))
    kernel, _ = learned(kernel="rbf")
    with pytest.raises(ValueError, match="takes rows that NumPy knows"):
        kernel.transform(torch.tensor(X))
    assert metric.transform(torch.tensor(X).to(torch.int64)).dtype == torch.float64
    assert metric.transform(torch.tensor(X).to(torch.float16)).dtype == torch.float32
