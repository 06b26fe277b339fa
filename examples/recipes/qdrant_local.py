"""Qdrant, in the local mode of its client: the same calls as for a server."""

from __future__ import annotations

import numpy as np
from common import Form, K, run
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams


def search(form: Form) -> np.ndarray:
    form = form.appended()
    distance = Distance.EUCLID if form.measure == "l2" else Distance.DOT
    client = QdrantClient(":memory:")
    client.create_collection("items", VectorParams(size=form.stored.shape[1], distance=distance))
    first = 0
    for vectors in (form.stored, form.added):
        points = [PointStruct(id=first + k, vector=vector.tolist()) for k, vector in enumerate(vectors)]
        client.upsert("items", points)
        first += len(vectors)
    found = [client.query_points("items", query=q.tolist(), limit=K).points for q in form.asked]
    return np.array([[point.id for point in points] for points in found])


run("Qdrant", search)
