"""Pair classifiers learned from files or loaded, and their answers to pairs of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from ..explain import Provenance
from ..learner import MetricLearner
from ..linalg import Matrix
from ..metric import absorb_scaling
from ..pairs import PairClassifier
from ..progress import Progress
from ..tables.constraint_files import read_pair_rows
from ..tables.dataset import load_dataset
from ..tables.labels_and_ids import name_rows
from ..tables.model import FittedModel
from ..tables.options import RowOptions, TextFormat
from .estimation import fixed_learner, make_estimator, make_scaling
from .options import LearningOptions


@dataclass(frozen=True, eq=False)
class PairAnswers:
    """Answers to pairs: distance, probability of being the same, and 1 or 0, one entry for each pair."""

    distance: np.ndarray
    probability: np.ndarray
    same: np.ndarray


@dataclass(frozen=True, eq=False)
class PairModel:
    """A pair classifier and its model, which reads and encodes rows for it."""

    classifier: PairClassifier
    model: FittedModel

    @classmethod
    def load(cls, path: Path, encoder: str | None = None) -> PairModel:
        """Load a classifier that `mahalo pairs --save` wrote."""
        classifier = PairClassifier.load(path)
        return cls(classifier, FittedModel(path, classifier.metric_, encoder))

    def compare(self, first: Matrix, second: Matrix) -> PairAnswers:
        """Return the answers to the pairs of row k of `first` and row k of `second`."""
        n = first.shape[0]
        if first.shape != second.shape:
            raise ValueError(f"pairs need as many first rows as second ones; got shapes {first.shape}, {second.shape}.")
        X = sp.vstack([first, second], format="csr") if sp.issparse(first) else np.concatenate([first, second])
        return answer_pairs(self.classifier, X, np.column_stack([np.arange(n), np.arange(n, 2 * n)]))

    def compare_texts(self, first: Sequence[str], second: Sequence[str]) -> PairAnswers:
        """Return the answers to pairs of texts, for a classifier that was fitted on texts alone."""
        return self.compare(self.model.encode_texts(first), self.model.encode_texts(second))


@dataclass(frozen=True)
class ClassifiedRows:
    """A pair classifier, rows for it in their own units, and their ids."""

    classifier: PairClassifier
    X: Matrix
    ids: list[str] | None

    def answer_file(self, file: str, form: TextFormat) -> dict[str, np.ndarray]:
        """Return columns with one entry for each pair of the file: its rows, distance, probability and answer."""
        pairs = read_pair_rows(file, self.X.shape[0], self.ids, form)
        first, second = (name_rows(ends, self.ids) for ends in pairs.T)
        return {"first": first, "second": second} | vars(answer_pairs(self.classifier, self.X, pairs))


@dataclass(frozen=True)
class Threshold:
    """Aim of the threshold between same and not, and the share of same pairs among those to answer."""

    aim: str
    fpr: float
    base_rate: float | None


def learn_classifier(
    rows: RowOptions, options: LearningOptions, threshold: Threshold, progress: Progress
) -> ClassifiedRows:
    """Load rows and fit a classifier."""
    dataset = load_dataset(rows, progress, in_memory=True)
    scaling = make_scaling(dataset, options)
    progress.show("learning: same or not")
    classifier = PairClassifier(
        _make_learner(options, progress),
        threshold=str(threshold.aim),
        fpr=threshold.fpr,
        base_rate=threshold.base_rate,
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
        return fixed_learner(options, progress.show)
    estimator = make_estimator(options, progress.show)
    return estimator if options.embeddings else estimator.set_params(normalize=[False, True], scoring="auc")


def load_classifier(model: Path, rows: RowOptions, progress: Progress) -> ClassifiedRows:
    """Load a classifier and rows for it."""
    loaded = PairModel.load(model, rows.encoder)
    found = loaded.model.read(rows, progress)
    return ClassifiedRows(loaded.classifier, found.X, found.ids)


def answer_pairs(classifier: PairClassifier, X: Matrix, pairs: np.ndarray) -> PairAnswers:
    """Return the answers to pairs of rows of X."""
    distances = classifier.distances(X, pairs)
    same = (distances <= classifier.distance_threshold_).astype(np.int64)
    return PairAnswers(distances, classifier.calibration_(distances), same)


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
