"""Files that an earlier version wrote: they load, answer as they did then, and keep what was noted about the fit."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mahalo
from mahalo import MetricLearner, OnlineMetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain import Provenance
from mahalo.pairs import PairClassifier
from mahalo.persistence import INDEX
from mahalo.report import write
from mahalo.search import build_index, load_index

FOLDER = Path(__file__).parent / "version_2"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
ROWS = np.array(EXPECTED["rows"])
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def path_of(name, folder):
    """The path of a file, unpacked into `folder` first where it is compressed."""
    packed = FOLDER / f"{name}.safetensors.gz"
    if not packed.exists():
        return FOLDER / f"{name}.safetensors"
    path = folder / f"{name}.safetensors"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


@pytest.mark.parametrize("name", ["metric", "kernel", "adapter", "command", "command_pairs", "chosen"])
def test_metrics(name, tmp_path):
    metric = mahalo.load(path_of(name, tmp_path))
    X = np.hstack([ROWS, np.eye(3)]) if metric.n_features == 7 else ROWS
    np.testing.assert_allclose(metric.distances(X), EXPECTED[name], **CLOSE)
    metric.save(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(mahalo.load(tmp_path / "again.safetensors").distances(X), metric.distances(X))


def test_an_adapter():
    T = EmbeddingAdapter.load(FOLDER / "adapter.safetensors").transform(ROWS)
    D = np.linalg.norm(T[:, None] - T, axis=2)
    np.testing.assert_allclose(D, EXPECTED["adapter"], atol=1e-6)


def test_an_index():
    found = load_index(FOLDER / "index.safetensors").kneighbors(ROWS, 2)
    np.testing.assert_allclose(found.distances, EXPECTED["index"]["distances"], **CLOSE)
    assert found.ids.tolist() == EXPECTED["index"]["ids"]


def test_an_index_of_sparse_rows(rng, tmp_path):
    """In the first version arrays of sparse rows had shorter names."""
    X = sp.random_array((40, 30), density=0.2, rng=rng, format="csr")
    index = build_index(MetricLearner(basis=3).fit(X, np.arange(40) % 3), X)
    index.save(tmp_path / "new.safetensors")
    contents = INDEX.read(tmp_path / "new.safetensors")
    arrays = {name.replace("0.rows_", "0."): array for name, array in contents.arrays.items()}
    assert {"0.data", "0.indices", "0.indptr", "0.shape"} < arrays.keys()
    dataclasses.replace(contents, version=1, arrays=arrays).write(tmp_path / "old.safetensors")
    found, expected = (load_index(tmp_path / f"{name}.safetensors").kneighbors(X[:5], 3) for name in ("old", "new"))
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_a_classifier():
    classifier = PairClassifier.load(FOLDER / "classifier.safetensors")
    np.testing.assert_allclose(classifier.predict_proba(ROWS, [[0, 1], [1, 2]]), EXPECTED["classifier"], **CLOSE)


def test_a_stream(tmp_path):
    stream = OnlineMetricLearner.load(FOLDER / "stream.safetensors")
    np.testing.assert_allclose(stream.transform(ROWS), EXPECTED["stream"], **CLOSE)
    stream.partial_fit(ROWS, [0, 2, 0]).save(tmp_path / "again.safetensors")


def test_a_report_of_one_hot_columns_needs_no_names(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(FOLDER / "rows.csv")
    X = pd.get_dummies(table.drop(columns=["id", "species"]), dtype=float).to_numpy()
    page = write(mahalo.load(FOLDER / "command.safetensors"), X, table["species"], tmp_path / "page.html").read_text()
    assert "colour=green" in page and "As stored with the metric at its fit" in page


def test_provenance_of_a_command_that_chose(tmp_path):
    made = Provenance.of(mahalo.load(path_of("chosen", tmp_path)))
    assert made.table.columns == ("sepal length", "sepal width", "petal length", "petal width")
    assert (made.table.label, made.table.id, made.version) == ("species", "id", "0.1.0")
    assert (made.data.n_rows, made.data.n_features, made.data.n_classes) == (10, 4, 2)
    assert made.data.standardised and made.data.source == "rows2.csv" and made.data.n_chosen_by == 10
    assert made.fit.estimator == "MetricLearnerCV" and made.fit.certificate.converged and len(made.fit.history)
    assert len(made.choice.candidates) == 24 and made.choice.chosen.gamma == made.fit.gamma
    searched = {"prior", "strategy", "n_components", "residual", "normalize"}
    later = {"space", "kernel_params", "features"}  # which that version did not choose
    settings = made.choice.chosen.settings
    assert set(settings) == searched | later and all(settings[name] is None for name in later)
    assert made.evaluation.n_queries == 10 and made.evaluation.primary == "10-NN"
    assert made.notes["constraints"]["count"] == sum(made.fit.n_constraints.values())


@pytest.mark.parametrize("name", ["command", "command_pairs", "chosen", "metric", "kernel", "adapter"])
def test_provenance_is_the_same_when_it_is_saved_anew(name, tmp_path):
    metric = mahalo.load(path_of(name, tmp_path))
    made = Provenance.of(metric)
    assert (made.fit is None) == (name in ("metric", "kernel", "adapter"))
    made.attach(metric).save(tmp_path / "again.safetensors")
    assert Provenance.of(mahalo.load(tmp_path / "again.safetensors")).to_dict() == made.to_dict()


def test_pairs_of_a_command():
    made = Provenance.of(mahalo.load(FOLDER / "command_pairs.safetensors"))
    assert made.choice is None and made.data.fingerprint.labels is None and made.evaluation.primary == "pair AUC"
    assert dict(made.table.one_hot) == {"colour": ["blue", "green", "red"]}
