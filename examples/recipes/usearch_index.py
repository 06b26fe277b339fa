"""usearch: a graph, by Euclidean distance in both forms."""

from __future__ import annotations

import numpy as np
from common import Form, K, run
from usearch.index import Index


def search(form: Form) -> np.ndarray:
    form = form.as_distances()
    index = Index(ndim=form.stored.shape[1], metric="l2sq", dtype="f32", connectivity=32, expansion_search=400)
    # By one thread, for several make another graph each time.
    index.add(np.arange(len(form.stored)), form.stored, threads=1)
    index.add(len(form.stored) + np.arange(len(form.added)), form.added, threads=1)
    return index.search(form.asked, K).keys


run("usearch", search, at_least=0.99)
