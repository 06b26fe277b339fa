"""Save a metric, load it elsewhere, and search by it: the file holds numbers only, no code."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

import mahalo

X, y = load_digits(return_X_y=True)
catalogue, queries, y_catalogue, y_queries = train_test_split(X, y, test_size=300, stratify=y, random_state=0)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.safetensors"
    learner = mahalo.MetricLearner(strategy="neighbors", pairs_per_class=500, gamma=0.1).fit(catalogue, y_catalogue)
    learner.metric_.save(path)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")

    metric = mahalo.load(path)
    assert np.array_equal(metric.transform(queries), learner.transform(queries))

# In the transformed space the learned distance is the ordinary one, so any index will do.
for name, transform in (("Euclidean", lambda rows: rows), ("learned", metric.transform)):
    index = NearestNeighbors(n_neighbors=10).fit(transform(catalogue))
    found = index.kneighbors(transform(queries), return_distance=False)
    precision = (y_catalogue[found] == y_queries[:, None]).mean()
    print(f"{name:10s} share of the 10 nearest that show the same digit: {precision:.3f}")
