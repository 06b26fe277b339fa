"""
An RBF kernel where no linear metric can help
=============================================

Rings in a plane, and six columns of noise. The learned kernel is defined for rows it has never seen, so it goes
wherever scikit-learn takes a kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from mahalo import MetricLearner
from mahalo.evaluation import knn_predict, vote

WIDTH = {"gamma": 0.1}  # of the RBF; the learner's own gamma is the price of violating a constraint


def rings(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two rings around the origin, radius 1 and 1.9, and six columns that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    angle, radius = rng.uniform(0, 2 * np.pi, n_rows), 1 + 0.9 * y + 0.15 * rng.standard_normal(n_rows)
    plane = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.hstack([plane, rng.standard_normal((n_rows, 6))]), y


def knn_error(distances: np.ndarray, y: np.ndarray, y_new: np.ndarray, k: int = 10) -> float:
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return float(np.mean(vote(y[nearest]) != y_new))  # a tie goes to those that are nearer


def main() -> None:
    X, y = rings(400, seed=0)
    new, y_new = rings(1000, seed=1)
    linear = MetricLearner(pairs_per_class=500).fit(X, y)
    rbf = MetricLearner(kernel="rbf", kernel_params=WIDTH, pairs_per_class=1000).fit(X, y)
    print(f"{rbf.constraints_}, relative gap {rbf.certificate_.relative_gap:.0e}\n")

    # By the RBF itself the nearest rows are the Euclidean ones, so that is the baseline of both.
    print("error on 1000 new rows           10-NN")
    for name, metric in (("Euclidean, and plain RBF", None), ("linear, learned", linear), ("RBF, learned", rbf)):
        distances = metric.metric_.distances(new, X) if metric else np.linalg.norm(new[:, None] - X, axis=2)
        print(f"  {name:28s}{100 * knn_error(distances, y, y_new):7.1f} %")

    def plain(A, B):
        return rbf_kernel(A, B, **WIDTH)

    for use in ("SVC", "KernelPCA"):
        for name, kernel in (("RBF", plain), ("RBF, learned", rbf.metric_.kernel)):
            if use == "SVC":
                right = SVC(kernel=kernel).fit(X, y).score(new, y_new)
            else:
                pca = KernelPCA(2, kernel="precomputed").fit(kernel(X, X))
                plane, new_plane = pca.transform(kernel(X, X)), pca.transform(kernel(new, X))
                right = np.mean(knn_predict(plane, y, new_plane) == y_new)
            what = "SVC with" if use == "SVC" else "10-NN in the 2-D KernelPCA of"
            print(f"{what} {name}: error {100 * (1 - right):.1f} %")

    _, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    planes = {"two of eight columns": new[:, :2]}
    for name, kernel in (("RBF", plain), ("RBF, learned", rbf.metric_.kernel)):
        planes[f"{name}: principal components"] = (
            KernelPCA(2, kernel="precomputed").fit(kernel(X, X)).transform(kernel(new, X))
        )
    for ax, (name, plane) in zip(axes, planes.items(), strict=True):
        ax.scatter(*plane.T, c=y_new, s=8, cmap="coolwarm")
        ax.set(title=name, xticks=[], yticks=[])
    plt.show()


if __name__ == "__main__":
    main()
