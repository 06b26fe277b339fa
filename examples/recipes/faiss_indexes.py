"""faiss: all vectors, cells of them (IVF), and a graph (HNSW)."""

from __future__ import annotations

import faiss
import numpy as np
from common import Form, K, run


def search_with(factory: str):
    def search(form: Form) -> np.ndarray:
        form = form.as_distances() if factory.startswith("HNSW") else form.appended()
        measure = faiss.METRIC_L2 if form.measure == "l2" else faiss.METRIC_INNER_PRODUCT
        index = faiss.index_factory(form.stored.shape[1], factory, measure)
        index.train(form.stored)
        index.add(form.stored)
        index.add(form.added)
        if factory.startswith("IVF"):
            faiss.extract_index_ivf(index).nprobe = 8
        elif factory.startswith("HNSW"):
            index.hnsw.efSearch = 200
        return index.search(form.asked, K)[1]

    return search


faiss.omp_set_num_threads(1)  # several make another graph each time
run("faiss Flat", search_with("Flat"))
run("faiss IVF", search_with("IVF16,Flat"), at_least=0.9)
run("faiss HNSW", search_with("HNSW32,Flat"), at_least=0.99)
