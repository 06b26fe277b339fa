"""Pipelines converted by skl2onnx: the same numbers under onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearner, MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter
from mahalo.features import Local

pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

X, y = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(0, 150, 2), np.arange(1, 150, 2)
LEARNERS = {
    "linear": MetricLearner(random_state=0),
    "normalised": MetricLearner(normalize=True, random_state=0),
    "local": MetricLearner(features=Local(n_regions=2), random_state=0),
    "rbf": MetricLearner(kernel="rbf", random_state=0),
    "chosen": MetricLearnerCV(kernel="linear", features=None, gammas=[1.0], cv=2, random_state=0),
    "adapter": EmbeddingAdapter(gammas=[0.1], residual=[0.5], cv=2, random_state=0),
}


@pytest.fixture(autouse=True)
def registered():
    from mahalo.integrations.skl2onnx import register_converters

    register_converters()


def run(model, rows: np.ndarray, **options) -> list[np.ndarray]:
    import onnxruntime

    graph = skl2onnx.to_onnx(model, rows[:1], target_opset=18, **options)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": rows})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_learner_in_a_pipeline_converts(learner, dtype):
    pipeline = make_pipeline(StandardScaler(), learner).fit(X[TRAIN], y[TRAIN])
    wanted = pipeline.transform(X[TEST])
    (found,) = run(pipeline, X[TEST].astype(dtype))
    assert found.dtype == (np.float32 if isinstance(learner, EmbeddingAdapter) else dtype)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_pipeline_with_a_classifier_converts_whole():
    pipeline = make_pipeline(StandardScaler(), LEARNERS["linear"], KNeighborsClassifier(5)).fit(X[TRAIN], y[TRAIN])
    labels, _ = run(pipeline, X[TEST], options={"zipmap": False})
    np.testing.assert_array_equal(labels, pipeline.predict(X[TEST]))


def test_two_learners_in_one_graph_keep_their_names_apart():
    union = FeatureUnion([(name, LEARNERS[name]) for name in ("linear", "normalised")]).fit(X[TRAIN], y[TRAIN])
    (found,) = run(union, X[TEST])
    np.testing.assert_allclose(found, union.transform(X[TEST]), rtol=1e-5, atol=1e-5)


def test_whole_numbers_convert():
    rows = np.round(10 * X).astype(np.int64)
    learner = MetricLearner(random_state=0).fit(rows[TRAIN], y[TRAIN])
    (found,) = run(learner, rows[TEST])
    np.testing.assert_allclose(found, learner.transform(rows[TEST]), rtol=1e-4, atol=1e-3)


def test_an_early_opset_is_refused():
    learner = MetricLearner(normalize=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs target_opset 18 or later; got 15"):
        skl2onnx.to_onnx(learner, X[:1].astype(np.float32), target_opset=15)


def test_what_cannot_be_exported_says_so():
    learner = MetricLearner(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match="is a function, which cannot be exported"):
        skl2onnx.to_onnx(learner, X[:1].astype(np.float32), target_opset=18)
