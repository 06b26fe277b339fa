"""A pair classifier from what a user says on the command line, and its answers."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from ..embeddings import EmbeddingAdapter
from ..explain import Provenance
from ..learner import MetricLearner
from ..metric import Scaling, absorb_scaling
from ..pairs import PairClassifier
from ..selection import MetricLearnerCV
from ..validation import is_precomputed
from .known import Source, gather
from .learning import Settings, settled
from .model import named_rows
from .naming import named, plain_name, quoted
from .tables import read_asked, write
from .watching import Watch

__all__ = ["Answers", "Calling", "answered", "learned_classifier", "loaded_classifier", "summary"]


@dataclass(frozen=True)
class Answers:
    """One entry for each pair."""

    index: np.ndarray
    distances: np.ndarray
    probability: np.ndarray
    same: np.ndarray
    names: list[str] | None

    def columns(self) -> dict[str, Any]:
        first, second = (named(ends, self.names) for ends in self.index.T)
        ends = {"first": first, "second": second, "distance": self.distances}
        return ends | {"probability": self.probability, "same": self.same.astype(np.int64)}

    def write(self, path: Path) -> None:
        write(path, self.columns())

    def print(self) -> None:
        columns = self.columns()
        sys.stdout.write(",".join(columns) + "\n")
        for first, second, distance, probability, same in zip(*columns.values(), strict=True):
            sys.stdout.write(f"{quoted(first)},{quoted(second)},{distance:.6g},{probability:.4f},{same}\n")

    def as_json(self) -> list[dict[str, Any]]:
        columns = self.columns()
        return [{name: plain_name(columns[name][k]) for name in columns} for k in range(len(self.same))]


@dataclass(frozen=True)
class Calling:
    """What a yes or no is to be good at, and how many pairs are the same where answers are used."""

    threshold: str
    fpr: float
    base_rate: float | None


def learned_classifier(
    source: Source, settings: Settings, calling: Calling, watch: Watch
) -> tuple[PairClassifier, Any, list[str] | None]:
    """(classifier, rows, names) of rows as they come."""
    known = gather(source, watch)
    settings.check(known)
    scaling = Scaling.of(known.X) if settings.scales(known.X) else None
    watch.show("learning: same or not")
    classifier = PairClassifier(
        _learner(dataclasses.replace(settings, verbose=watch.show)),
        threshold=str(calling.threshold),
        fpr=calling.fpr,
        base_rate=calling.base_rate,
        holdout=str(settings.holdout),
        random_state=settings.seed,
    )
    X = known.X if scaling is None else scaling.apply(known.X)
    classifier.fit(X, known.y, constraints=known.constraints)
    metric = classifier.metric_ if scaling is None else absorb_scaling(classifier.metric_, scaling)
    made = Provenance.of(metric)
    made = dataclasses.replace(made, table=known.table_record(), data=known.data_record(scaling))
    classifier.metric_ = made.attach(metric)
    return classifier, known.X, known.ids


def _learner(settings: Settings) -> MetricLearner:
    if is_precomputed(settings.kernel):
        raise ValueError("--kernel precomputed takes similarities, not a table of rows; use PairClassifier in Python.")
    if settings.gamma is not None:
        return settled(settings)
    values = settings.of_cv()
    if settings.embeddings:
        return EmbeddingAdapter(**values)
    return MetricLearnerCV(**values, normalize=[False, True], scoring="auc")


def loaded_classifier(model: Path, source: Source, watch: Watch) -> tuple[PairClassifier, Any, list[str] | None]:
    classifier = PairClassifier.load(model)
    return classifier, *named_rows(classifier.metric_, model, source, watch)


def answered(classifier: PairClassifier, X: Any, names: list[str] | None, ask: str, encoding: str) -> Answers:
    index = read_asked(ask, X.shape[0], names, encoding)
    distances = classifier.distances(X, index)
    same = distances <= classifier.distance_threshold_
    return Answers(index, distances, classifier.calibration_(distances), same, names)


def summary(classifier: PairClassifier, learned: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"threshold": round(classifier.threshold_, 4), "calibration": classifier.calibration_.method}
    if learned:
        held = classifier.held_out_
        told |= {"held-out pairs": len(held.same), "AUC": round(float(roc_auc_score(held.same, -held.distances)), 4)}
    return told
