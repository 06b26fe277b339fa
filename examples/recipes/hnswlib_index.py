"""hnswlib: a graph, by Euclidean distance or by inner product."""

from __future__ import annotations

import hnswlib
import numpy as np
from common import Form, K, run


def search(form: Form) -> np.ndarray:
    form = form.appended()
    n, m = len(form.stored), len(form.added)
    index = hnswlib.Index(space=form.measure, dim=form.stored.shape[1])
    index.init_index(max_elements=n + m, M=32, ef_construction=200)
    index.add_items(form.stored, np.arange(n))
    index.add_items(form.added, np.arange(n, n + m))
    index.set_ef(400)
    return index.knn_query(form.asked, K)[0]


run("hnswlib", search, at_least=0.9)
