"""Provenance of metrics: made at the fit, stored in files, read back the same; damage is an error."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

import mahalo
from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain import Provenance, fingerprint
from mahalo.explain.provenance import DataRecord, TableRecord


@pytest.fixture
def data(rng):
    return labelled_data(rng, n=60, d=8)


def chosen(data):
    rng = np.random.default_rng(0)
    return MetricLearnerCV(gammas=[0.01, 1.0], residual=[0.0, 1.0], basis=2, random_state=rng).fit(*data)


def test_a_fit_records_where_its_metric_comes_from(data):
    learner = chosen(data)
    made = Provenance.of(learner.metric_)
    assert made.version == mahalo.__version__
    assert made.data.n_rows == 60 and made.data.n_features == 8
    assert made.data.fingerprint == fingerprint(*data)
    assert sum(made.fit.n_constraints.values()) == learner.constraints_.n_constraints
    assert made.fit.estimator == "MetricLearnerCV" and made.fit.parameters["basis"] == 2
    assert made.fit.certificate == learner.certificate_ and made.fit.history == tuple(learner.history_[-200:])
    assert made.choice.chosen.gamma == made.fit.gamma == learner.gamma_
    behind = [candidate.behind for candidate in made.choice.candidates]
    assert behind == sorted(behind) and len(behind) == len(learner.cv_results_["gamma"])


@pytest.mark.parametrize("kind", ["one", "chosen", "adapter", "hard", "stopped", "kernel", "objects", "precomputed"])
def test_files_keep_it(data, tmp_path, kind):
    X, y = data
    pairs = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=5.0, lower=0.1)
    learner = {
        "one": lambda: MetricLearner().fit(X, y),
        "chosen": lambda: chosen(data),
        "adapter": lambda: EmbeddingAdapter().fit(X, y),
        "hard": lambda: MetricLearner(gamma=np.inf).fit(X, constraints=pairs),
        "stopped": lambda: MetricLearner(loss=mahalo.losses.Frobenius(eta=0.0), prior=np.eye(8)).fit(X, y),
        "kernel": lambda: MetricLearner(kernel="rbf").fit(X, y),
        "objects": lambda: MetricLearner(kernel=lambda A, B: np.array([[a[0] @ b[0] for b in B] for a in A])).fit(
            [(x,) for x in X], y
        ),
        "precomputed": lambda: MetricLearner(kernel="precomputed").fit(X @ X.T, y),
    }[kind]()
    made = Provenance.of(learner.metric_)
    json.dumps(made.to_dict(), allow_nan=False)
    assert (made.data.fingerprint is None) == (kind in ("objects", "precomputed"))
    if kind == "objects":
        return
    learner.metric_.save(tmp_path / "m.safetensors")
    assert Provenance.of(mahalo.load(tmp_path / "m.safetensors")).to_dict() == made.to_dict()
    assert (made.evaluation is not None) == (kind == "adapter")


def test_one_candidate_is_chosen_where_priors_are_arrays(rng):
    X, y = labelled_data(rng, n=60, apart=0.5)
    d = X.shape[1]
    priors = [np.eye(d), np.diag(np.r_[1e-4, np.ones(d - 1)])]
    for order in (priors, priors[::-1]):
        learner = MetricLearnerCV(prior=order, gammas=[0.1, 1.0], strategy="random").fit(X, y)
        results, choice = learner.cv_results_, Provenance.of(learner.metric_).choice
        (best,) = (candidate for candidate in choice.candidates if candidate.chosen)
        assert best.score == learner.best_score_ == results["mean_score"][learner.best_index_]
        assert results["prior"][learner.best_index_] is learner.prior_


def test_what_is_not_of_provenance_stays(data):
    metric = dataclasses.replace(MetricLearner().fit(*data).metric_, about={"mine": 1, "columns": ["a"]})
    made = Provenance(table=TableRecord(columns=("b",), label="y"), data=DataRecord(n_rows=3))
    about = made.attach(metric).about
    assert about["mine"] == 1 and about["columns"] == ["b"] and about["label"] == "y"
    assert Provenance.of(made.attach(metric)) == made


def test_a_metric_of_ones_own_has_none(data):
    metric = dataclasses.replace(MetricLearner().fit(*data).metric_, about={})
    assert Provenance.of(metric) == Provenance()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("data", "n_rows"), -1),
        (("data", "fingerprint"), "x"),
        (("data", "scale"), ["much"]),
        (("fit", "certificate"), None),
        (("fit", "certificate"), {"gap": 1.0}),
        (("fit", "gamma"), "much"),
        (("fit", "history"), [1]),
        (("choice", "candidates"), []),
        (("choice", "candidates"), {"score": 1}),
        (("evaluation",), {"before": {}}),
        (("fit",), [1]),
        (("data",), "x"),
    ],
)
def test_damage_is_an_error(data, where, value):
    metric = chosen(data).metric_
    about = json.loads(json.dumps(metric.about))
    inner = about["provenance"]
    for name in where[:-1]:
        inner = inner[name]
    inner[where[-1]] = value
    with pytest.raises(ValueError, match="stored with this model is damaged"):
        Provenance.of(dataclasses.replace(metric, about=about))


@pytest.mark.parametrize("names", [["a", "b"], [3, 7], [True, False]])
def test_labels_are_recognised_by_name_or_number(data, names):
    from mahalo.explain.fingerprint import label_hashes

    X, _ = data
    y = np.array(names)[np.arange(60) % 2]
    made = Provenance.of(MetricLearner().fit(X, y).metric_)
    assert made.data.fingerprint.labels in label_hashes(y)
    assert fingerprint(X, y).labels in label_hashes(y)
    assert made.data.fingerprint.labels not in label_hashes(y[[0, 0, *range(2, 60)]])


def test_sparse_rows_have_the_fingerprint_of_dense_ones(rng):
    X = sp.random_array((50, 2000), density=0.01, rng=rng, format="csr")
    X.data[0] = -0.0
    twice = sp.csr_array((np.r_[1.0, 2.0], np.r_[3, 3], np.r_[0, 2]), shape=(1, 5))
    assert fingerprint(X) == fingerprint(X.toarray()) == fingerprint(X.tocsc().tocsr())
    assert fingerprint(twice) == fingerprint(twice.toarray()) and twice.nnz == 2
