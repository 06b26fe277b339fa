"""
The losses side by side
=======================

The same pairs, the same γ, and what each loss makes of them. A loss says what it costs to leave the prior. It decides
what the learned metric looks like (how many directions are stretched, shrunk or given up) more than how well it does.
"""

import time
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner
from mahalo.evaluation import knn_predict
from mahalo.losses import Frobenius, LogDet, SDPFrobenius, SDPLogDet, VonNeumann

TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
LOSSES = {
    "LogDet": LogDet(),
    "von Neumann": VonNeumann(),
    "Frobenius, η = 1": Frobenius(),
    "Frobenius, η = 0": Frobenius(eta=0.0),
    "SDP + Frobenius": SDPFrobenius(),
    "SDP + log det": SDPLogDet(),
}


@dataclass(frozen=True)
class Outcome:
    """Means over the held-out halves."""

    error: float
    seconds: float
    n_steps: float
    eigenvalues: np.ndarray  # of the learned metric, largest first
    n_given_up: float  # directions along which learned distances are nothing


def constraints_for(loss, X, y) -> Constraints:
    """100 pairs of either kind for each class; for the SDPs also an objective that pulls neighbours of a class in."""
    pairs = Constraints.from_labels(y, X, random_state=0)
    return pairs + Constraints.target_pull(y, X) if isinstance(loss, (SDPFrobenius, SDPLogDet)) else pairs


def evaluate(loss, gamma: float, X, y, n_repeats: int = 5) -> Outcome:
    """10-NN error on held-out halves, in standard units of the learning half; loss None leaves the metric alone."""
    found = []
    for train, test in RepeatedStratifiedKFold(n_splits=2, n_repeats=n_repeats, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        Z, Z_test = scaler.transform(X[train]), scaler.transform(X[test])
        seconds, n_steps, eigenvalues = 0.0, 0, np.ones(X.shape[1])
        if loss is not None:
            constraints = constraints_for(loss, Z, y[train])
            start = time.perf_counter()
            learner = MetricLearner(loss=loss, gamma=gamma).fit(Z, constraints=constraints)
            seconds, n_steps = time.perf_counter() - start, learner.n_iter_
            eigenvalues = np.linalg.eigvalsh(learner.metric_.matrix)[::-1]
            Z, Z_test = learner.transform(Z), learner.transform(Z_test)
        wrong = knn_predict(Z, y[train], Z_test, k=10) != y[test]
        n_given_up = (eigenvalues < 1e-6 * eigenvalues[0]).sum()
        found.append((wrong.mean(), seconds, n_steps, eigenvalues, n_given_up))
    return Outcome(*(np.mean(column, axis=0) for column in zip(*found, strict=True)))


def main(gamma: float = 1.0) -> None:
    _, axes = plt.subplots(1, len(TABLES), figsize=(11, 3.6), layout="constrained")
    for ax, (table, load) in zip(axes, TABLES.items(), strict=True):
        X, y = load(return_X_y=True)
        print(f"{table}, {X.shape[1]} features, γ = {gamma:g}")
        print(
            f"  {'':18s}{'10-NN error':>12s}{'largest':>10s}{'smallest':>10s}{'given up':>10s}{'steps':>7s}{'ms':>6s}"
        )
        print(f"  {'Euclidean':18s}{100 * evaluate(None, gamma, X, y).error:10.1f} %")
        for name, loss in LOSSES.items():
            seen = evaluate(loss, gamma, X, y)
            w = seen.eigenvalues
            print(
                f"  {name:18s}{100 * seen.error:10.1f} %{w[0]:10.2g}{max(w[-1], 0.0):10.1g}{seen.n_given_up:10.1f}"
                f"{seen.n_steps:7.0f}{1000 * seen.seconds:6.0f}"
            )
            ax.plot(1 + np.arange(len(w)), np.maximum(w, 1e-9), marker=".", label=name)
        ax.set(title=table, xlabel="direction", yscale="log", ylim=(1e-4, None))
    axes[0].set_ylabel("eigenvalue of the learned metric")
    axes[0].legend(fontsize="x-small")
    plt.show()


if __name__ == "__main__":
    main()
