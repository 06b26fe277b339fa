"""
Images as sets of features
==========================

The pyramid match kernel, as it is and learned. A digit is the set of its edge points, each with its place and the
direction of the edge. Sets have different sizes and no order, so there are no columns to compare; the pyramid match
counts how many points of two sets pair off, and how closely.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mahalo import MetricLearner
from mahalo.kernels import PyramidMatch, SpatialPyramidMatch, VocabularyTree


def edge_points(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(features, positions): gradient and grey level of every point with an edge, and where it is, in [0, 1]."""
    dy, dx = np.gradient(image / 16.0)
    rows, columns = np.nonzero(np.hypot(dy, dx) > 0.15)
    return np.column_stack([dy[rows, columns], dx[rows, columns], image[rows, columns] / 32.0]), np.column_stack(
        [columns, rows]
    ) / 7.0


def recognised(similarities: np.ndarray, y_known: np.ndarray, y_new: np.ndarray) -> float:
    """Share of new images whose most similar known image is of their class."""
    return float(np.mean(y_known[similarities.argmax(axis=1)] == y_new))


def main() -> None:
    digits = load_digits()
    images = [edge_points(image) for image in digits.images[:1000]]
    order = np.random.default_rng(0).permutation(len(images))
    known, new = ([images[i] for i in part] for part in (order[:150], order[150:]))
    y_known, y_new = digits.target[order[:150]], digits.target[order[150:]]

    # Pyramid match: place and edge together in one tree of clusters. Spatial: words of edges, matched by place.
    def placed(images):
        return [np.hstack([features, positions]) for features, positions in images]

    tree = VocabularyTree.grow(np.vstack(placed(known)), branching=6, depth=3)
    words = VocabularyTree.grow(np.vstack([features for features, _ in known]), branching=20, depth=1)
    kernels = {
        "pyramid match": (PyramidMatch(tree), placed(known), placed(new)),
        "spatial pyramid match": (SpatialPyramidMatch(words), known, new),
    }
    print(f"{len(known)} known and {len(new)} new images\n\n1-NN accuracy            as it is   learned")
    for name, (kernel, sets, new_sets) in kernels.items():
        plain = recognised(kernel(new_sets, sets), y_known, y_new)
        metric = MetricLearner(kernel=kernel, percentiles=(1, 99)).fit(sets, y_known).metric_
        learned = recognised(-metric.distances(new_sets, sets), y_known, y_new)
        print(f"{name:24s} {100 * plain:7.1f} % {100 * learned:7.1f} %")

    _, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
    for ax, k in zip(axes, order[:4], strict=True):
        features, positions = images[k]
        ax.imshow(digits.images[k], cmap="Greys", alpha=0.5)
        ax.quiver(*(7 * positions.T), features[:, 1], -features[:, 0], color="C3", width=0.012)
        ax.set(title=f"{len(features)} edge points", xticks=[], yticks=[])
    plt.show()


if __name__ == "__main__":
    main()
