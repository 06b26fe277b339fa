"""Pair classifiers learned from files or loaded, and their answers to pairs of rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from ..explain import Provenance
from ..learner import MetricLearner
from ..linalg import Matrix
from ..metric import absorb_scaling
from ..pairs import PairClassifier
from ..progress import SILENT, Progress
from ..tables.constraint_files import read_pair_rows
from ..tables.dataset import load_dataset
from ..tables.labels_and_ids import name_rows
from ..tables.model import FittedModel
from ..tables.options import RowOptions, TextFormat
from .estimation import fixed_learner, make_estimator, make_scaling
from .options import LearningOptions


@dataclass(frozen=True)
class ClassifiedRows:
    """A pair classifier, rows for it in their own units, and their ids."""

    classifier: PairClassifier
    X: Matrix
    ids: list[str] | None

    def answer_file(self, file: str, form: TextFormat) -> dict[str, np.ndarray]:
        """Return columns with one entry for each pair of the file: its rows, distance, probability and answer."""
        pairs = read_pair_rows(file, self.X.shape[0], self.ids, form)
        distances = self.classifier.distances(self.X, pairs)
        first, second = (name_rows(ends, self.ids) for ends in pairs.T)
        return {
            "first": first,
            "second": second,
            "distance": distances,
            "probability": self.classifier.calibration_(distances),
            "same": (distances <= self.classifier.distance_threshold_).astype(np.int64),
        }


def learn_classifier(
    rows: RowOptions,
    options: LearningOptions,
    progress: Progress = SILENT,
    *,
    threshold: str = "accuracy",
    fpr: float = 0.01,
    base_rate: float | None = None,
) -> ClassifiedRows:
    """Load rows and fit a classifier; the other parameters are those of `PairClassifier`."""
    dataset = load_dataset(rows, progress, in_memory=True)
    scaling = make_scaling(dataset, options)
    progress.show("learning: same or not")
    classifier = PairClassifier(
        _make_learner(options, progress),
        threshold=str(threshold),
        fpr=fpr,
        base_rate=base_rate,
        holdout=str(options.holdout),
        random_state=options.seed,
    )
    X = dataset.scaled(scaling)
    classifier.fit(X, dataset.y, constraints=dataset.constraints)
    metric = classifier.metric_ if scaling is None else absorb_scaling(classifier.metric_, scaling)
    made = Provenance.of(metric)
    made = dataclasses.replace(made, table=dataset.table_record(), data=dataset.data_record(scaling))
    classifier.metric_ = made.attach(metric)
    return ClassifiedRows(classifier, dataset.X, dataset.ids)


def _make_learner(options: LearningOptions, progress: Progress) -> MetricLearner:
    if options.gamma is not None:
        return fixed_learner(options, progress)
    estimator = make_estimator(options, progress)
    return estimator if options.embeddings else estimator.set_params(normalize=[False, True], scoring="auc")


def load_classifier(model: Path, rows: RowOptions, progress: Progress = SILENT) -> ClassifiedRows:
    """Load a classifier and rows for it."""
    classifier = PairClassifier.load(model)
    found = FittedModel(model, classifier.metric_, rows.encoder).read(rows, progress)
    return ClassifiedRows(classifier, found.X, found.ids)


def summarize(classifier: PairClassifier, fitted: bool) -> dict[str, str | float]:
    """Return threshold and calibration, and, after a fit, the AUC on held-out pairs."""
    found: dict[str, str | float] = {
        "threshold": round(classifier.threshold_, 4),
        "calibration": classifier.calibration_.method,
    }
    if fitted:
        pairs = classifier.held_out_
        auc = roc_auc_score(pairs.same, -pairs.distances)
        found |= {"held-out pairs": len(pairs.same), "AUC": round(float(auc), 4)}
    return found
