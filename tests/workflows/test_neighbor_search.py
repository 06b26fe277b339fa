"""Neighbours found by plain functions: those of the distances in full, for rows, queries and texts."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.tables.options import RowOptions
from mahalo.workflows.index_files import index_rows
from mahalo.workflows.neighbor_search import find_neighbors, open_search


def nearest(D: np.ndarray, ids: list[str], k: int) -> list[list[str]]:
    return [[ids[row] for row in rows] for rows in np.argsort(D, axis=1)[:, :k]]


@pytest.mark.parametrize("saved", [False, True])
def test_vectors_are_searched_for_in_rows_and_in_a_saved_index(trees, saved):
    if saved:
        index_rows(trees.model, trees.rows, "exact").save("i.safetensors")
    search = open_search(trees.model, RowOptions(data=["i.safetensors"]) if saved else trees.rows)
    Q = trees.X[:7] * 1.01
    found, D = search.find(Q, 3), trees.metric.distances(Q, trees.X)
    assert found.neighbors.tolist() == nearest(D, trees.ids, 3)
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :3], rtol=1e-6)
    assert found.by_query()[2] == {
        "query": 2,
        "neighbors": found.neighbors[2].tolist(),
        "distances": found.distances[2].tolist(),
    }


def test_rows_are_queries_for_the_others(trees):
    found, D = find_neighbors(trees.model, trees.rows, None, 4), trees.metric.distances(trees.X)
    np.fill_diagonal(D, np.inf)
    assert found.neighbors.tolist() == nearest(D, trees.ids, 4)
    assert found.columns()["query"].tolist() == np.repeat(trees.ids, 4).tolist()
