"""
Clusters of the kind you mean
=============================

k-means before and after learning from what is known about a few pairs: handwritten digits 3, 8 and 9. Of a hundred
pairs of images somebody said whether they show the same digit; nobody said which digit, nor anything about the other
images.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from mahalo import Constraints, MetricLearner
from mahalo.cluster import MetricKMeans

X, y = load_digits(return_X_y=True)
kept = np.isin(y, (3, 8, 9))
X, y = X[kept], y[kept]

rng = np.random.default_rng(0)
pairs = np.array([rng.choice(len(X), 2, replace=False) for _ in range(100)])
same = y[pairs[:, 0]] == y[pairs[:, 1]]
constraints = Constraints.from_pairs(similar=pairs[same], dissimilar=pairs[~same], n_rows=len(X))
told = np.unique(pairs)
untold = np.setdiff1d(np.arange(len(X)), told)
print(f"{len(X)} images, {constraints}; {len(untold)} images are in no pair\n")

width = np.median(pdist(X, "sqeuclidean"))
learners = {
    "linear": MetricLearner(),
    "Gaussian": MetricLearner(kernel="rbf", kernel_params={"gamma": 1 / width}),
}
print("agreement with the digits (adjusted Rand index) over images that are in no pair")
plain = KMeans(3, n_init=10, random_state=0).fit(X)
print(f"  plain k-means         {adjusted_rand_score(y[untold], plain.labels_[untold]):.2f}")
for name, learner in learners.items():
    model = MetricKMeans(3, learner=learner, random_state=0).fit(X, constraints=constraints)
    agreement = adjusted_rand_score(y[untold], model.labels_[untold])
    print(f"  learned, {name:10s}   {agreement:.2f}   {model.n_violated_} pairs violated")
    if name == "linear":
        learned = model

_, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
before, after = (PCA(2).fit_transform(rows)[untold] for rows in (X, learned.metric_.transform(X)))
for ax, name, plane, colours in (
    (axes[0], "the digits", before, y),
    (axes[1], "plain k-means", before, plain.labels_),
    (axes[2], "k-means under the learned metric", after, learned.labels_),
):
    ax.scatter(*plane.T, c=colours[untold], s=8, cmap="brg")
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
