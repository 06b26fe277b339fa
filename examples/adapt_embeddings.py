"""
Five labels a class to a better index
=====================================

Adapt vectors of a frozen encoder, judge them before deploying, and keep one matrix.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import euclidean_distances, label_ranking_average_precision_score
from sklearn.model_selection import train_test_split

from mahalo.embeddings import EmbeddingAdapter

E, y = load_digits(return_X_y=True)  # stand-ins for the vectors of a frozen encoder
E_index, E_query, y_index, y_query = train_test_split(E, y, test_size=0.3, stratify=y, random_state=0)


def mean_average_precision(index, queries):
    """How well the whole ranking of the index puts rows of the query's class first."""
    return label_ranking_average_precision_score(y_query[:, None] == y_index, -euclidean_distances(queries, index))


reached = {0: mean_average_precision(E_index, E_query)}
print(f"frozen               MAP {reached[0]:.3f}")
rng = np.random.default_rng(0)
for n in (5, 20):
    labelled = np.concatenate([rng.choice(np.flatnonzero(y_index == c), n, replace=False) for c in range(10)])
    adapter = EmbeddingAdapter(random_state=0).fit(E_index[labelled], y_index[labelled])
    reached[n] = mean_average_precision(adapter.transform(E_index), adapter.transform(E_query))
    print(f"{n:2d} labels a class    MAP {reached[n]:.3f}")

print("\nwhat held-out labelled rows said beforehand:")
print(adapter.before_after_)

# One matrix is all there is to deploy.
with TemporaryDirectory() as folder:
    path = Path(folder) / "adapter.safetensors"
    adapter.save(path)
    again = EmbeddingAdapter.load(path)
    assert np.allclose(again.transform(E_query), adapter.transform(E_query), atol=1e-5)
print(f"\nsaved and read again: {adapter.matrix_.shape[0]} numbers in, {adapter.matrix_.shape[1]} out")

_, ax = plt.subplots(figsize=(6, 3), layout="constrained")
bars = ax.bar(["frozen", "5 labels a class", "20 labels a class"], reached.values(), color=["grey", "C0", "C0"])
ax.bar_label(bars, fmt="%.3f")
ax.set(ylabel="MAP of new queries", ylim=(0, 1))
plt.show()
