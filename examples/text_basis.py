"""
Text as sparse tf-idf rows
==========================

From words to neighbours, without ever making the rows dense. The documents are what SciPy says of its own functions
before it lists their parameters; the classes are its subpackages. A metric over a basis is the identity plus a change
in a few directions (`residual=True`), or lives in those directions alone (`residual=False`). A projection on a good
basis may help by itself, so it is printed beside what is learned.
"""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from mahalo import MetricLearner
from mahalo.basis import ClassBasis
from mahalo.evaluation import vote

SUBPACKAGES = (
    "cluster.hierarchy",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "sparse.csgraph",
    "sparse.linalg",
    "spatial",
    "special",
    "stats",
)


def descriptions() -> tuple[list[str], list[str], np.ndarray]:
    """(names, texts, classes) of SciPy's public functions and classes, each once."""
    names, texts, classes, seen = [], [], [], set()
    for code, subpackage in enumerate(SUBPACKAGES):
        module = importlib.import_module(f"scipy.{subpackage}")
        for name in module.__all__:
            thing = getattr(module, name)
            text = re.split(r"\n\w[\w ]*\n-{3,}", inspect.getdoc(thing) or "")[0]
            if inspect.ismodule(thing) or id(thing) in seen or len(text.split()) < 8:
                continue
            seen.add(id(thing))
            names.append(name)
            texts.append(text)
            classes.append(code)
    return names, texts, np.array(classes)


def tf_idf(texts: list[str]):
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english", token_pattern=r"[a-z]{3,}")
    return words.fit_transform(texts)


def knn_accuracy(distances: np.ndarray, y_train: np.ndarray, y_test: np.ndarray, k: int = 5) -> float:
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return float(np.mean(vote(y_train[nearest]) == y_test))  # a tie goes to those that are nearer


def main() -> None:
    names, texts, y = descriptions()
    X = tf_idf(texts)
    print(f"{X.shape[0]} descriptions, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} words in each\n")
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    query = names.index("RK23")
    train = train[train != query]

    basis = ClassBasis(56)  # with labels, basis=56 means the same: four clusters in each of 14 classes
    next_to_nothing = 1e-9  # a γ at which constraints count for nothing: the metric stays what it was
    learners = {
        "Euclidean (nothing learned)": MetricLearner(basis=basis, gamma=next_to_nothing),
        "identity plus low rank": MetricLearner(basis=basis, gamma=10.0),
        "projection (nothing learned)": MetricLearner(basis=basis, residual=False, gamma=next_to_nothing),
        "learned in the projection": MetricLearner(basis=basis, residual=False, gamma=0.1),
    }
    print(f"{'k = 56':30s}{'5-NN accuracy':>14s}{'pair AUC':>10s}")
    found = {}
    for name, learner in learners.items():
        learner.fit(X[train], y[train])
        accuracy = knn_accuracy(learner.metric_.distances(X[test], X[train]), y[train], y[test])
        found[name] = 100 * accuracy, learner.score(X[test], y[test])
        print(f"{name:30s}{found[name][0]:12.1f} %{found[name][1]:10.3f}")

    print(f"\nnearest to {names[query]} ({SUBPACKAGES[y[query]]}), which was not learned from:")
    for name in ("Euclidean (nothing learned)", "identity plus low rank"):
        nearest = train[learners[name].metric_.distances(X[[query]], X[train])[0].argsort()[:5]]
        print(f"  {name}\n    " + ", ".join(f"{names[i]} ({SUBPACKAGES[y[i]]})" for i in nearest))

    metric = learners["learned in the projection"].metric_
    print(f"\ntransform gives {metric.transform(X).shape[1]} columns, in which distances are the learned ones")

    _, axes = plt.subplots(1, 2, figsize=(9.5, 2.8), layout="constrained", sharey=True)
    colours = ["lightgrey", "tab:blue", "lightgrey", "tab:orange"]
    for ax, what, values in zip(axes, ("5-NN accuracy, %", "pair AUC"), zip(*found.values(), strict=True), strict=True):
        bars = ax.barh(list(found), values, color=colours)
        ax.bar_label(bars, fmt="%.3g", padding=3)
        ax.set(title=what, xlim=(0, 1.15 * max(values)))
    axes[0].invert_yaxis()
    plt.show()


if __name__ == "__main__":
    main()
