"""hnswlib: a graph, by Euclidean distance in both forms."""

from __future__ import annotations

import hnswlib
import numpy as np
from common import Form, K, run


def search(form: Form) -> np.ndarray:
    form = form.as_distances()
    n, m = len(form.stored), len(form.added)
    index = hnswlib.Index(space="l2", dim=form.stored.shape[1])
    index.init_index(max_elements=n + m, M=32, ef_construction=200)
    # By one thread, for several make another graph each time.
    index.add_items(form.stored, np.arange(n), num_threads=1)
    index.add_items(form.added, np.arange(n, n + m), num_threads=1)
    index.set_ef(400)
    return index.knn_query(form.asked, K)[0]


run("hnswlib", search, at_least=0.99)
