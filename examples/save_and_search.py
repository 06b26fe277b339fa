"""
Save a metric, load it elsewhere, and search by it
==================================================

The file holds numbers only, no code. In the space it maps to, the learned distance is the ordinary one, so any index
will do.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
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
neighbours = {}
for name, transform in (("Euclidean", lambda rows: rows), ("learned", metric.transform)):
    index = NearestNeighbors(n_neighbors=10).fit(transform(catalogue))
    found = index.kneighbors(transform(queries), return_distance=False)
    neighbours[name] = found
    precision = (y_catalogue[found] == y_queries[:, None]).mean()
    print(f"{name:10s} share of the 10 nearest that show the same digit: {precision:.3f}")

# The query on which the two differ most, and its neighbours: those that show another digit have a red frame.
right = {name: (y_catalogue[found] == y_queries[:, None]).sum(axis=1) for name, found in neighbours.items()}
query = int(np.argmax(right["learned"] - right["Euclidean"]))
_, axes = plt.subplots(2, 9, figsize=(10, 2.8), layout="constrained")
for row, (name, found) in zip(axes, neighbours.items(), strict=True):
    row[0].imshow(queries[query].reshape(8, 8), cmap="Greys")
    row[0].set_title(f"query, {name}", fontsize=9)
    for ax, k in zip(row[1:], found[query], strict=False):
        ax.imshow(catalogue[k].reshape(8, 8), cmap="Greys")
        ax.spines[:].set(color="grey" if y_catalogue[k] == y_queries[query] else "red", linewidth=2)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
plt.show()
