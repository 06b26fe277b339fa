"""Answers are those of the metric, of the index and of the classifier."""

from __future__ import annotations

import numpy as np
import pytest
from services import tree_rows

from mahalo import MetricLearner, load
from mahalo.feedback import QueryAdapter
from mahalo.pairs import PairClassifier
from mahalo.serving.loading import load_service
from mahalo.tables.options import RowOptions
from mahalo.text import HybridIndex

QUERIES = tree_rows(5, seed=1)
STORED = tree_rows()
NAMES = [f"r{k}" for k in range(len(STORED))]


def ask(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_nearest_are_those_of_all_distances(metric_service, numbers, client_of):
    D = load(numbers / "metric.safetensors").distances(QUERIES, STORED)
    order = np.argsort(D, axis=1, kind="stable")[:, :7]
    found = ask(client_of(metric_service), "/search", queries=QUERIES.tolist(), k=7)
    assert found["ids"] == [[NAMES[row] for row in one] for one in order]
    np.testing.assert_allclose(found["distances"], np.take_along_axis(D, order, axis=1), atol=1e-9)
    squared = ask(client_of(metric_service), "/search", queries=QUERIES.tolist(), k=7.0, squared=True)
    np.testing.assert_allclose(squared["distances"], np.square(found["distances"]))
    assert len(ask(client_of(metric_service), "/search", queries=QUERIES.tolist(), k=1000)["ids"][0]) == len(STORED)


@pytest.mark.parametrize("squared", [False, True])
def test_distances_of_rows_and_ids_are_those_of_the_metric(pair_service, numbers, client_of, squared):
    metric = PairClassifier.load(numbers / "same.safetensors").metric_
    expected = metric.distances(QUERIES, STORED[[7, 3]], squared)
    for left, right in (
        ({"rows": QUERIES.tolist()}, {"ids": ["r7", "r3"]}),
        ({"rows": QUERIES.tolist()}, {"rows": STORED[[7, 3]].tolist()}),
    ):
        found = ask(client_of(pair_service), "/distance", left=left, right=right, squared=squared)
        np.testing.assert_allclose(found["distances"], expected, rtol=1e-9, atol=1e-9)
    found = ask(client_of(pair_service), "/distance", left={"ids": ["r7"]}, right={"ids": ["r3", "r7"]})
    np.testing.assert_allclose(found["distances"], metric.distances(STORED[[7]], STORED[[3, 7]]), atol=1e-7)


def test_probabilities_are_those_of_the_classifier(pair_service, numbers, client_of):
    classifier = PairClassifier.load(numbers / "same.safetensors")
    pairs = [[0, 2], [0, 1], [5, 5]]
    left, right = (STORED[[pair[side] for pair in pairs]] for side in (0, 1))
    named = [{"ids": [NAMES[pair[side]] for pair in pairs]} for side in (0, 1)]
    for sides in (({"rows": left.tolist()}, {"rows": right.tolist()}), named, (named[0], {"rows": right.tolist()})):
        found = ask(client_of(pair_service), "/same", left=sides[0], right=sides[1])
        expected = classifier.predict_proba(STORED, pairs)[:, 1]
        np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-6)
        assert found["same"] == classifier.predict(STORED, pairs).tolist()
        np.testing.assert_allclose(found["distances"], classifier.distances(STORED, pairs), atol=1e-7)
    assert 0 < found["probabilities"][1] < found["probabilities"][0] < 1


def test_a_saved_graph_answers_as_the_rows(graph_service, pair_service, client_of):
    bodies = {
        "/search": {"queries": QUERIES.tolist(), "k": 5},
        "/distance": {"left": {"ids": ["r1", "r2"]}, "right": {"rows": QUERIES.tolist()}},
        "/same": {"left": {"ids": ["r1", "r2"]}, "right": {"ids": ["r5", "r4"]}},
    }
    for path, body in bodies.items():
        exact, graph = (ask(client_of(service), path, **body) for service in (pair_service, graph_service))
        assert exact.get("ids") == graph.get("ids")
        np.testing.assert_allclose(graph["distances"], exact["distances"], rtol=1e-4, atol=1e-4)


def test_rows_without_ids_are_named_by_number(numbers, client_of):
    np.save(numbers / "rows.npy", STORED)
    MetricLearner(prior="diagonal").fit(STORED, np.arange(40) % 2).metric_.save(numbers / "plain.safetensors")
    service = load_service(numbers / "plain.safetensors", RowOptions(data=[str(numbers / "rows.npy")]))
    client = client_of(service)
    found = ask(client, "/search", queries=STORED[[3, 8]].tolist(), k=1)
    assert found["ids"] == [[3], [8]]
    ask(client, "/distance", left={"ids": [3, 4.0]}, right={"ids": [0]})
    for wrong in ("3", 40, -1, True, 3.5, None):
        assert client.post("/distance", json={"left": {"ids": [wrong]}, "right": {"ids": [0]}}).status_code == 422


# -- texts -----------------------------------------------------------------------------------------------------------


def test_texts_are_searched_and_compared(text_service, client_of):
    model = text_service.model
    asked = ["an old boat on the river", "bread"]
    E = model.text_encoder.encode(asked)
    client = client_of(text_service)
    found = ask(client, "/search", texts=asked, k=4)
    assert found == ask(client, "/search", queries=E.astype(float).tolist(), k=4)
    expected = text_service.index.kneighbors(E, 4)
    assert found["ids"] == expected.ids.tolist()
    first = {"ids": [found["ids"][0][0], found["ids"][1][0]]}
    D = ask(client, "/distance", left={"texts": asked}, right=first)["distances"]
    np.testing.assert_allclose(np.diag(D), [one[0] for one in found["distances"]], atol=1e-7)


def test_numbers_stand_beside_texts(mixed_service, client_of):
    client = client_of(mixed_service)
    found = ask(client, "/search", texts=["boat river"], numbers=[[7]], k=3)
    row = mixed_service.model.text_encoder.encode(["boat river"])
    assert found["ids"] == mixed_service.index.kneighbors(np.hstack([row, [[7.0]]]), 3).ids.tolist()
    for body in ({"texts": ["boat"]}, {"texts": ["boat"], "numbers": [[1], [2]]}, {"texts": ["boat"], "numbers": [[]]}):
        assert client.post("/search", json=body).status_code == 422


def test_an_index_with_bm25_ranks_as_it_does_in_python(hybrid_service, texts, client_of):
    asked = ["a new boat with a sail", "yeast"]
    index = HybridIndex.load(texts / "hybrid.safetensors", hybrid_service.model.text_encoder)
    best = index.search(asked, 5)
    found = ask(client_of(hybrid_service), "/search", texts=asked, k=5)
    assert found["ids"] == [[index.ids[row] for row in rows] for rows in best.rows]
    np.testing.assert_allclose(found["scores"], best.scores)
    metric, E = hybrid_service.model.metric, hybrid_service.model.text_encoder.encode
    D = metric.distances(E(asked), E(index.texts))
    np.testing.assert_allclose(found["distances"], np.take_along_axis(D, best.rows, axis=1), atol=1e-6)


@pytest.mark.parametrize("kind", ["text_service", "hybrid_service"])
def test_queries_are_not_written_to_the_cache_of_vectors(kind, request, client_of):
    service = request.getfixturevalue(kind)
    path = service.model.text_encoder.cache_path
    before = path.read_bytes()
    ask(client_of(service), "/search", texts=["a boat that nobody asked for before"])
    assert path.read_bytes() == before and not list(path.parent.glob("*-wal"))


# -- what cannot be served -----------------------------------------------------------------------------------------


def test_an_index_of_another_model_is_refused(numbers, graph_service):
    path = numbers / f"{graph_service.index.backend}.safetensors"
    with pytest.raises(ValueError, match="another model"):
        load_service(numbers / "metric.safetensors", RowOptions(data=[str(path)]))
    for names in ({"id": "name"}, {"ids": "names.txt"}):
        with pytest.raises(ValueError, match="saved with its ids"):
            load_service(numbers / "same.safetensors", RowOptions(data=[str(path)], **names))


def test_a_distance_without_probabilities_says_how_to_get_some(metric_service, client_of):
    answer = client_of(metric_service).post("/same", json={"left": {"ids": ["r1"]}, "right": {"ids": ["r2"]}})
    assert answer.status_code == 404 and "mahalo pairs" in answer.json()["remedy"]


def test_a_model_from_feedback_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    E = rng.standard_normal((30, 4))
    pairs = [(q, d, 1.0) for q in range(30) for d in (q, (q + 1) % 30)]
    QueryAdapter().fit(E, E + 0.1, pairs).save(tmp_path / "q.safetensors")
    with pytest.raises(ValueError, match="learned from feedback"):
        load_service(tmp_path / "q.safetensors", RowOptions(data=["rows.csv"]))
