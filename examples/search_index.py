"""
A better index
==============

Neighbours by pixels and by a learned metric, exact and through a graph, and a picture of some.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from mahalo import MetricLearnerCV
from mahalo.search import build_index

X, y = load_digits(return_X_y=True)
stored, queries, y_stored, y_queries = train_test_split(X, y, test_size=400, stratify=y, random_state=0)
learner = MetricLearnerCV(scoring="map", random_state=0).fit(stored[:300], y_stored[:300])

plain = NearestNeighbors(n_neighbors=10).fit(stored).kneighbors(queries, return_distance=False)
found = {"by pixels": plain}
for backend in ("exact", "faiss", "usearch"):
    found[f"learned, {backend}"] = build_index(learner, stored, backend).kneighbors(queries, 10).ids
right = {name: y_stored[ids] == y_queries[:, None] for name, ids in found.items()}
for name, hits in right.items():
    print(f"{name:17s} share of the ten nearest that show the same digit: {hits.mean():.3f}")

# The queries that gained most, each beside its ten nearest before and after.
gain = (right["learned, exact"].sum(axis=1) - right["by pixels"].sum(axis=1)).argsort()[::-1][:3]
figure = plt.figure(figsize=(9, 5.2), layout="constrained")
axes = figure.subplots(6, 11)
for block, query in enumerate(gain):
    for row, name in enumerate(("by pixels", "learned, exact")):
        images = [queries[query], *stored[found[name][query]]]
        for column, image in enumerate(images):
            ax = axes[2 * block + row, column]
            ax.imshow(image.reshape(8, 8), cmap="gray_r")
            wrong = column > 0 and not right[name][query, column - 1]
            ax.set(xticks=[], yticks=[])
            for spine in ax.spines.values():
                spine.set(color="#CC5500" if wrong else "#D0D0D0", linewidth=2 if wrong else 0.8)
        axes[2 * block + row, 0].set_ylabel(name.split(",")[0], rotation=0, ha="right", va="center", fontsize=8)
figure.suptitle("a query, its ten nearest by pixels and under the learned metric; orange: another digit", fontsize=9)
plt.show()
