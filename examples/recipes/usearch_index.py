"""usearch: a graph, by Euclidean distance or by inner product."""

from __future__ import annotations

import numpy as np
from common import Form, K, run
from usearch.index import Index


def search(form: Form) -> np.ndarray:
    form = form.appended()
    metric = "l2sq" if form.measure == "l2" else "ip"
    index = Index(ndim=form.stored.shape[1], metric=metric, dtype="f32", connectivity=32, expansion_search=400)
    index.add(np.arange(len(form.stored)), form.stored)
    index.add(len(form.stored) + np.arange(len(form.added)), form.added)
    return index.search(form.asked, K).keys


run("usearch", search, at_least=0.9)
