"""The compiled loops from several threads at once, on a free-threaded Python too."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mahalo import MetricLearner


def test_fits_at_the_same_time_are_those_one_by_one(wine):
    X, y = wine
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()

    def fitted(seed):
        return MetricLearner(random_state=seed).fit(X, y).metric_.distances(X[:20], X)

    alone = [fitted(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(fitted, range(8)))
    np.testing.assert_array_equal(together, alone)
    assert not free or not sys._is_gil_enabled(), "a module of ours brought the interpreter's lock back"
