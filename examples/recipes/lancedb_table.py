"""LanceDB: a table of vectors in a folder."""

from __future__ import annotations

import tempfile

import lancedb
import numpy as np
from common import Form, K, run


def as_rows(first: int, vectors: np.ndarray) -> list[dict]:
    return [{"id": first + k, "vector": vector} for k, vector in enumerate(vectors)]


def search(form: Form) -> np.ndarray:
    form = form.appended()
    measure = "l2" if form.measure == "l2" else "dot"
    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("items", as_rows(0, form.stored))
        table.add(as_rows(len(form.stored), form.added))
        found = [table.search(q).distance_type(measure).limit(K).to_list() for q in form.asked]
    return np.array([[row["id"] for row in rows] for rows in found])


run("LanceDB", search)
