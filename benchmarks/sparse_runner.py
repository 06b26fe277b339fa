"""In a process of its own: the fit over a basis on many sparse rows, its peak memory, and the product beside it.

`python -m benchmarks.sparse_runner '{"n_rows": …}'` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.metrics import roc_auc_score

from mahalo import Constraints, MetricLearner

from .scale_data import Texts
from .timing import peak_bytes, seconds_of

__all__ = ["Sizes", "measure"]


@dataclass(frozen=True)
class Sizes:
    n_rows: int
    n_features: int = 5_000
    n_classes: int = 20
    k: int = 100
    pairs_per_class: int = 2_500  # of either kind
    residual: bool = True
    rounds: int = 3


def measure(sizes: Sizes) -> dict:
    texts = Texts(n_features=sizes.n_features, n_classes=sizes.n_classes)
    X, y = texts.rows(sizes.n_rows)
    learner = MetricLearner(basis=sizes.k, residual=sizes.residual, pairs_per_class=sizes.pairs_per_class)
    before = _resident_bytes()
    fit = [seconds_of(lambda: learner.fit(X, y))]
    beyond = peak_bytes() - before
    U = np.random.default_rng(0).standard_normal((sizes.n_features, sizes.k))
    product = [seconds_of(lambda: X @ U)]
    for _ in range(sizes.rounds - 1):
        fit.append(seconds_of(lambda: learner.fit(X, y)))
        product.append(seconds_of(lambda: X @ U))
    new, y_new = texts.rows(5_000, draw=1)
    return {
        "non_zeros": int(X.nnz),
        "data_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "n_pairs": learner.constraints_.n_constraints,
        "fit_seconds": median(fit),
        "product_seconds": median(product),
        "bytes_beyond_data": beyond,
        "relative_gap": learner.certificate_.relative_gap,
        "n_iter": learner.n_iter_,
        "hessian_products": sum(step.inner_iterations for step in learner.history_),
        "auc_before": _pair_auc(new, y_new, lambda A, B: np.asarray((A - B).power(2).sum(axis=1)).ravel()),
        "auc": _pair_auc(new, y_new, learner.metric_.pair_distances),
    }


def _pair_auc(X, y, distance) -> float:
    """Chance that two rows of a class are closer than two of different ones."""
    pairs = Constraints.from_labels(y, pairs_per_class=1000, random_state=0).pairs
    i, j = pairs.index.T
    return float(roc_auc_score(pairs.sign > 0, -distance(X[i], X[j])))


def _resident_bytes() -> int:
    """Memory in use now; where the system does not say, the most so far: data are made in blocks, so about the same."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else peak_bytes()


if __name__ == "__main__":
    print(json.dumps(measure(Sizes(**json.loads(sys.argv[1])))))
