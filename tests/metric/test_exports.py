"""Exports of `transform` to ONNX and torch: the same numbers, in runtimes that know nothing of this library."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from mahalo import Metric, MetricLearner
from mahalo.features import Local, Quadratic
from mahalo.metric import Scaling
from mahalo.metric.onnx_graph import OPSET

TOLERANCE = 1e-5  # of the largest coordinate

KINDS = {
    "full": {},
    "prior": {"prior": "covariance"},
    "low rank with a residual": {"basis": 2},
    "low rank": {"basis": 2, "residual": False},
    "leading": {"n_components": 2, "normalize": True},
    "normalised": {"normalize": True},
    "quadratic": {"features": Quadratic()},
    "quadratic of components": {"features": Quadratic(n_factors=2), "normalize": True},
    "local": {"features": Local(n_regions=3)},
    "leading of local": {"features": Local(n_regions=2), "n_components": 3},
    "rbf": {"kernel": "rbf", "kernel_params": {"width": 0.5}},
    "rbf of scikit-learn's width": {"kernel": "rbf"},
    "leading of rbf": {"kernel": "rbf", "n_components": 3, "normalize": True},
    "laplacian": {"kernel": "laplacian", "kernel_params": {"gamma": 0.2}},
    "polynomial": {"kernel": "polynomial", "kernel_params": {"degree": 2}},
    "sigmoid": {"kernel": "sigmoid", "kernel_params": {"gamma": 1e-3}, "psd": "clip"},
    "cosine": {"kernel": "cosine", "prior": "within"},
}


def learned(options: dict, *, seed: int, scaled: bool) -> tuple[Metric, np.ndarray]:
    """A metric, and rows that it has not seen, far from the origin if it scales columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 5)) + rng.standard_normal((3, 5))[y]
    metric = MetricLearner(random_state=seed, **options).fit(X[:60], y[:60]).metric_
    new = X[60:]
    if scaled:
        scaling = Scaling(rng.uniform(1e3, 3e3, 5), rng.uniform(0.3, 3.0, 5))
        metric, new = dataclasses.replace(metric, scaling=scaling), new * scaling.scale + scaling.mean
    return metric, new.astype(np.float32)


def expected(metric: Metric, X: np.ndarray) -> np.ndarray:
    return metric.transform(X.astype(np.float64))


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max(initial=0.0))


every_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
every_seed = pytest.mark.parametrize("seed", range(3))
scaled_or_not = pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])


def run_onnx(path, X: np.ndarray) -> np.ndarray:
    session = pytest.importorskip("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(["transformed"], {"X": X})
    return found


# -- ONNX ----------------------------------------------------------------------------------------------------


@every_kind
@every_seed
@scaled_or_not
def test_onnx_equals_transform(options, seed, scaled, tmp_path):
    pytest.importorskip("onnx")
    metric, X = learned(options, seed=seed, scaled=scaled)
    metric.to_onnx(tmp_path / "m.onnx")
    for rows in (X, X[:1], X[:0]):
        wanted = expected(metric, X)[: len(rows)]
        assert_close(run_onnx(tmp_path / "m.onnx", rows), wanted)


def test_onnx_of_zero_rows_and_extreme_sizes(tmp_path):
    pytest.importorskip("onnx")
    metric, X = learned({"normalize": True}, seed=0, scaled=False)
    metric.to_onnx(tmp_path / "m.onnx")
    rows = np.concatenate([np.zeros((1, 5)), 1e-25 * X[:2], 1e25 * X[:2]]).astype(np.float32)
    assert_close(run_onnx(tmp_path / "m.onnx", rows), expected(metric, rows))


def test_onnx_states_opset_shapes_and_columns(tmp_path):
    onnx = pytest.importorskip("onnx")
    metric, _ = learned({}, seed=0, scaled=False)
    about = {"columns": ["age", "town"], "one_hot": {"town": ["a", "b", "c", "d"]}}
    dataclasses.replace(metric, about=about).to_onnx(tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    (given,), (returned,) = model.graph.input, model.graph.output
    shapes = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in (given, returned)]
    assert shapes == [["rows", 5], ["rows", 5]]
    (columns,) = (prop.value for prop in model.metadata_props if prop.key == "columns")
    assert json.loads(columns) == ["age", "town=a", "town=b", "town=c", "town=d"]


def test_onnx_does_not_replace_a_file_by_half_of_one(tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    metric, _ = learned({}, seed=0, scaled=False)
    (tmp_path / "m.onnx").write_text("before")
    monkeypatch.setattr(onnx.checker, "check_model", lambda *a, **k: (_ for _ in ()).throw(ValueError("refused")))
    with pytest.raises(ValueError, match="refused"):
        metric.to_onnx(tmp_path / "m.onnx")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("m.onnx", "before")]


# -- torch ---------------------------------------------------------------------------------------------------


@every_kind
@scaled_or_not
def test_torch_equals_transform(options, scaled):
    torch = pytest.importorskip("torch")
    metric, X = learned(options, seed=0, scaled=scaled)
    module = metric.to_torch()
    for rows in (X, X[:1]):
        assert_close(module(torch.tensor(rows)).numpy(), expected(metric, X)[: len(rows)])


@every_kind
def test_torch_module_is_scripted_and_its_state_restored(options):
    torch = pytest.importorskip("torch")
    metric, X = learned(options, seed=1, scaled=True)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(metric.to_torch()), file)
    file.seek(0)
    assert_close(torch.jit.load(file)(torch.tensor(X)).numpy(), expected(metric, X))
    other, _ = learned(options, seed=1, scaled=True)
    module = other.to_torch()
    for buffer in module.buffers():
        buffer.zero_()
    module.load_state_dict(metric.to_torch().state_dict())
    assert_close(module(torch.tensor(X)).numpy(), expected(metric, X))


def test_torch_module_passes_gradients_and_keeps_the_precision_of_rows():
    torch = pytest.importorskip("torch")
    metric, X = learned({}, seed=0, scaled=False)
    module = metric.to_torch()
    assert not list(module.parameters())
    rows = torch.tensor(X, requires_grad=True)
    (module(rows) ** 2).sum().backward()
    np.testing.assert_allclose(rows.grad, 2 * X @ metric.matrix, rtol=1e-4, atol=1e-4)
    assert module(torch.tensor(X).to(torch.float64)).dtype == torch.float64
    assert module(torch.tensor(X).to(torch.int64)).dtype == torch.float32


# -- what cannot be exported ---------------------------------------------------------------------------------


def euclidean_similarity(X, Y):
    return np.exp(-0.1 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": euclidean_similarity}, "is a function, which cannot be exported; write metric.transform"),
        ({"kernel": "additive_chi2", "psd": "clip"}, "'additive_chi2' cannot be exported, only cosine"),
        ({"kernel": "sigmoid", "psd": "shift"}, "compares rows for equality .* psd='clip'"),
        ({"features": PolynomialFeatures()}, "are a PolynomialFeatures, .* before the learner in a Pipeline"),
    ],
)
def test_what_cannot_be_exported_says_so(options, message, tmp_path):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.5, 2.0, (40, 3)), rng.integers(0, 2, 40)
    metric = MetricLearner(random_state=0, **options).fit(X, y).metric_
    with pytest.raises(ValueError, match=message):
        metric.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_precomputed_kernel_says_so(tmp_path):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 2, 20)
    metric = MetricLearner(kernel="precomputed").fit(X @ X.T, y).metric_
    with pytest.raises(ValueError, match="takes similarities, not vectors"):
        metric.to_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("package", "export", "extra"),
    [("onnx", lambda m, p: m.to_onnx(p / "m.onnx"), "onnx"), ("torch", lambda m, p: m.to_torch(), "torch")],
)
def test_a_missing_library_is_named(package, export, extra, monkeypatch, tmp_path):
    metric, _ = learned({}, seed=0, scaled=False)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    monkeypatch.delitem(__import__("sys").modules, "mahalo.metric.torch_module", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install \"mahalo\[{extra}\]\""):
        export(metric, tmp_path)
