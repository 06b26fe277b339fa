"""Same or not: calibration and ranking of PairClassifier on held-out pairs, beside logistic regression on |x − y|."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.data import load_banking77
from mahalo import Constraints
from mahalo.embeddings import EmbeddingAdapter
from mahalo.pairs import PairClassifier, calibration_error

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder

__all__ = ["run"]

MOST_ERROR = 0.03


def run(settings: Settings) -> Report:
    rows, checks = [], []
    for name, classifier, X, y, X_new, y_new in _sets(settings):
        classifier.fit(X, y)
        index, same = _pairs(y_new, settings.seed + 1)
        p = classifier.predict_proba(X_new, index)[:, 1]
        plain = _logistic(X, y, X_new, index, settings.seed)
        auc = {"classifier": roc_auc_score(same, p), "logistic": roc_auc_score(same, plain)}
        own = roc_auc_score(same, -classifier.distances(X_new, index))
        brier = {"classifier": brier_score_loss(same, p), "logistic": brier_score_loss(same, plain)}
        error = calibration_error(same, p)
        accuracy = float((classifier.predict(X_new, index) == same).mean())
        rows.append((name, len(same), "PairClassifier", auc["classifier"], brier["classifier"], error, accuracy))
        error_plain, accuracy_plain = calibration_error(same, plain), float(((plain > 0.5) == same).mean())
        rows.append(
            (name, len(same), "logistic |x − y|", auc["logistic"], brier["logistic"], error_plain, accuracy_plain)
        )
        checks += [
            Check(f"{name}: expected calibration error", error, MOST_ERROR, at_least=False),
            Check(f"{name}: AUC above the metric's own by", auc["classifier"] - own, -1e-6),
            Check(f"{name}: AUC above logistic regression by", auc["classifier"] - auc["logistic"], 0.0),
            Check(f"{name}: Brier score below logistic regression by", brier["logistic"] - brier["classifier"], 0.0),
        ]
    columns = ("data", "pairs", "method", "AUC", "Brier", "calibration error", "accuracy")
    shown = tuple((*row[:3], *(f"{value:.4f}" for value in row[3:])) for row in rows)
    return Report(
        name="pairs",
        checks=tuple(checks),
        tables=(Table("pairs of rows never learned from", columns, shown),),
        notes=("half of the pairs are the same; calibration error in 15 bins of equal width",),
    )


def _sets(settings: Settings) -> Iterator[tuple[str, PairClassifier, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(name, classifier, rows and labels to learn from, rows and labels held out)."""
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=settings.seed)
    yield "digits", PairClassifier(random_state=settings.seed), X, y, X_new, y_new
    if settings.quick or (folder := data_folder()) is None:
        return
    os.environ.setdefault("MAHALO_DATA", str(folder))
    data = load_banking77()
    classifier = PairClassifier(EmbeddingAdapter(), random_state=settings.seed)
    train = data.is_train
    yield "banking77", classifier, data.X[train], data.y[train], data.X[~train], data.y[~train]


def _pairs(y: np.ndarray, seed: int, most: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    per_class = most // (2 * len(np.unique(y)))
    pairs = Constraints.from_labels(y, pairs_per_class=per_class, random_state=seed).pairs
    return pairs.index, pairs.sign > 0


def _logistic(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, index: np.ndarray, seed: int) -> np.ndarray:
    """Probabilities of "same" by logistic regression on the differences of the columns."""
    pairs, same = _pairs(y, seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(np.abs(X[pairs[:, 0]] - X[pairs[:, 1]]), same)
    return model.predict_proba(np.abs(X_new[index[:, 0]] - X_new[index[:, 1]]))[:, 1]
