"""Wrong labels found: `suspects` against the plain ratio of distances to the same label and to others."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import average_precision_score, euclidean_distances

from experiments.data import load_banking77, read_table
from mahalo import MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder, standardised

__all__ = ["run"]

SHARE, N_SEEDS, MARGIN = 0.05, 5, 0.02
_NO_DATA = "NOT RUN: pendigits and banking77, for want of the data folder; set MAHALO_DATA to it and run again"
RANDOM, NEAREST = "any other class", "nearest other class"


def run(settings: Settings) -> Report:
    seeds = [settings.seed + k for k in range(1 if settings.quick else N_SEEDS)]
    rows, checks, numbers = [], [], {}
    for name, X, y, learner in _sets(settings.quick):
        for kind, flip in ((RANDOM, _to_any), (NEAREST, _to_nearest)):
            began = time.perf_counter()
            found = np.array([_precisions(X, y, flip, learner(), seed) for seed in seeds])
            seconds = (time.perf_counter() - began) / len(seeds)
            ours, plain = found.mean(axis=0)
            rows.append((name, len(y), kind, f"{ours:.4f}", f"{plain:.4f}", f"{ours - plain:+.4f}", f"{seconds:.0f}"))
            margin = MARGIN if (name, kind) == ("banking77", NEAREST) else 0.0
            checks.append(Check(f"{name}, {kind}: above the plain ratio by", ours - plain, margin))
            numbers[f"{name}, {kind}"] = {"suspects": found[:, 0].tolist(), "plain": found[:, 1].tolist()}
    columns = ("data", "rows", "flipped to", "suspects", "plain ratio", "difference", "seconds a run")
    return Report(
        name="suspects",
        checks=tuple(checks),
        tables=(Table("average precision of wrong labels", columns, tuple(rows)),),
        notes=(
            f"{100 * SHARE:g} % of the labels flipped, mean over {len(seeds)} seeds from {settings.seed}; seconds are "
            "of learning and judging",
            "plain ratio: mean Euclidean distance to the five nearest of the same label over that to the five nearest "
            "of others",
            *([_NO_DATA] if data_folder() is None and not settings.quick else []),
        ),
        numbers=numbers,
    )


def _sets(quick: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray, Callable[[], MetricLearnerCV]]]:
    X, y = load_wine(return_X_y=True)
    yield "wine", standardised(X), y, MetricLearnerCV
    if quick:
        return
    yield "digits", *load_digits(return_X_y=True), MetricLearnerCV
    if (folder := data_folder()) is None:
        print(_NO_DATA, file=sys.stderr)
        return
    os.environ.setdefault("MAHALO_DATA", str(folder))
    table = read_table(folder / "pendigits" / "pendigits.npz").complete()
    yield "pendigits", table.X, np.unique(table.y, return_inverse=True)[1], MetricLearnerCV
    data = load_banking77()
    yield "banking77", data.X[data.is_train], data.y[data.is_train], EmbeddingAdapter


def _precisions(
    X: np.ndarray, y: np.ndarray, flip: Callable, learner: MetricLearnerCV, seed: int
) -> tuple[float, float]:
    """Average precision, ours and the rival's."""
    rng = np.random.default_rng(seed)
    wrong = rng.choice(len(y), round(SHARE * len(y)), replace=False)
    flipped = y.copy()
    flipped[wrong] = flip(X, y, wrong, rng)
    is_wrong = np.isin(np.arange(len(y)), wrong)
    found = learner.fit(X, flipped).suspects(X, flipped, n=len(y))
    score = np.empty(len(y))
    score[found.index] = found["score"]
    return tuple(float(average_precision_score(is_wrong, s)) for s in (score, plain_ratio(X, flipped)))  # type: ignore


def _to_any(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_classes = int(y.max()) + 1
    return (y[wrong] + rng.integers(1, n_classes, len(wrong))) % n_classes


def _to_nearest(X: np.ndarray, y: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The other class whose mean is nearest."""
    means = np.array([X[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])
    D = euclidean_distances(X[wrong], means)
    D[np.arange(len(wrong)), y[wrong]] = np.inf
    return D.argmin(axis=1)


def plain_ratio(X: np.ndarray, y: np.ndarray, k: int = 5) -> np.ndarray:
    """Mean Euclidean distance to the k nearest of the same label over that to the k nearest of others."""
    ratio = np.empty(len(y))
    for rows in np.array_split(np.arange(len(y)), -(-len(y) // 500)):
        D = euclidean_distances(X[rows], X)
        D[np.arange(len(rows)), rows] = np.inf
        same = y[rows][:, None] == y
        near = [np.sort(np.where(kind, D, np.inf), axis=1)[:, :k].mean(axis=1) for kind in (same, ~same)]
        ratio[rows] = near[0] / np.maximum(near[1], 1e-300)
    return ratio
