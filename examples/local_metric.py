"""
A metric that varies with place
===============================

One metric for all rows weighs a column the same everywhere. Over the features of `mahalo.features` the weights vary
with place: `Local` learns one metric for each of several regions, joined smoothly, and `Quadratic` lets the metric
vary linearly. Both are the problem of a linear metric over other columns, so the answer is proved as always. Here a
different column tells the classes apart in each of two groups of rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from mahalo import MetricLearner
from mahalo.evaluation import knn_predict
from mahalo.features import Local, Quadratic


def two_groups(n, seed):
    """Return rows whose class is told by the second column on the left, and by the first on the right."""
    rng = np.random.default_rng(seed)
    right, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    near = 0.35 * rng.normal(size=n) + y
    wide = 1.2 * rng.normal(size=n)
    X = np.where(right[:, None] == 1, np.c_[near + 8, wide], np.c_[wide, near])
    return np.c_[X, rng.normal(size=(n, 2))], y


X, y = two_groups(300, seed=0)
X_new, y_new = two_groups(600, seed=1)


def error(metric):
    return np.mean(knn_predict(metric.transform(X), y, metric.transform(X_new), k=10) != y_new)


_, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
for ax, (name, features) in zip(
    axes, {"linear": None, "quadratic": Quadratic(), "local": Local(n_regions=2)}.items(), strict=True
):
    learner = MetricLearner(features=features, strategy="neighbors", pairs_per_class=None, random_state=0).fit(X, y)
    print(f"{name:10s} error {error(learner.metric_):.3f}   relative gap {learner.certificate_.relative_gap:.0e}")
    ax.scatter(*X[:, :2].T, c=np.where(y, "#CC5500", "#0077BB"), s=7, alpha=0.5)
    for place in ([0, 0.5], [8.5, 0]):  # rows at one distance from a place
        W = learner.metric_.at([*place, 0, 0])[:2, :2]
        values, vectors = np.linalg.eigh(W)
        half = 0.8 * np.sqrt(np.sqrt(values.prod()) / values)  # of equal area
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        ax.add_patch(Ellipse(place, 2 * half[0], 2 * half[1], angle=angle, fill=False, linewidth=2))
    ax.set(title=f"{name}: error {error(learner.metric_):.3f}", aspect="equal")

# What the last of them weighs where
print(learner.explain())
plt.show()
