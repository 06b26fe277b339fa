"""Error of 10-NN after learning, against Euclidean, inverse covariance, LDA, NCA and LMNN on the same splits."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, t

from experiments import rivals
from experiments.protocol import N_NEIGHBORS, halves
from experiments.tabular import Distance, Half, sampled
from mahalo import MetricLearnerCV

from .peers import REQUIREMENTS, fit_lmnn
from .report import Check, Report
from .report import Table as ReportTable
from .settings import CACHE, Settings
from .tables import Table, load_tables, source_note

__all__ = ["run"]

OURS = "mahalo"
BASELINE = "Euclidean"
N_REPEATS = 5
N_FOLDS = 2
# Beyond this LMNN takes minutes per fit; larger tables are reduced to a stratified sample, for all methods.
MAX_ROWS = 3200
LEVEL = 0.05

Learn = Callable[[np.ndarray, np.ndarray], tuple[Distance, float]]
"""(X, y) → what was learned from them, and the seconds it took."""


@dataclass(frozen=True)
class _Split:
    """One fold of one repeat, in standard units of its training half."""

    table: str
    repeat: int
    fold: int
    half: Half

    @property
    def test_share(self) -> float:
        """Test rows per training row, which the corrected t-test wants."""
        return len(self.half.y_test) / len(self.half.y_train)


@dataclass(frozen=True)
class _Outcome:
    error: float
    seconds: float  # of learning alone


@dataclass(frozen=True)
class _Scores:
    """Errors of every method on one table, one per split, and how long learning took."""

    table: str
    n_rows: int
    n_rows_in_all: int
    test_share: float
    errors: dict[str, np.ndarray]
    seconds: dict[str, float]

    def mean(self, method: str) -> float:
        return float(self.errors[method].mean())


def _timed(learn: Callable[[np.ndarray, np.ndarray, int], Distance]) -> Learn:
    def timed(X: np.ndarray, y: np.ndarray) -> tuple[Distance, float]:
        start = time.perf_counter()
        return learn(X, y, 0), time.perf_counter() - start

    return timed


def lmnn(X: np.ndarray, y: np.ndarray) -> tuple[Distance, float]:
    peer = fit_lmnn(X, y)
    return lambda Z: Z @ peer.matrix.T, peer.seconds


METHODS: dict[str, Learn] = {
    BASELINE: _timed(rivals.euclidean),
    "inverse covariance": _timed(rivals.inverse_covariance),
    "LDA": _timed(rivals.lda),
    "NCA": _timed(rivals.nca),
    "LMNN": lmnn,
    OURS: _timed(lambda X, y, _: MetricLearnerCV().fit(X, y).transform),
}
# Slow, and not ours to change: their outcomes are kept from run to run, with all they depend on in the key.
CACHED = {"NCA": f"scikit-learn=={version('scikit-learn')}", "LMNN": " ".join(REQUIREMENTS)}


def run(settings: Settings) -> Report:
    tables = load_tables(max_rows=400 if settings.quick else None)
    cache = _Cache(CACHE / "accuracy", fresh=settings.fresh)
    n_repeats = 1 if settings.quick else N_REPEATS
    scores = [_score(table, n_repeats, settings.seed, cache) for table in tables]
    mean_error = {method: float(np.mean([s.mean(method) for s in scores])) for method in METHODS}
    mean_rank = dict(zip(METHODS, np.mean([_ranks(s) for s in scores], axis=0).tolist(), strict=True))
    return Report(
        name="accuracy",
        checks=tuple(_checks(scores, mean_error, mean_rank)),
        tables=(_error_table(scores, mean_error, mean_rank), _seconds_table(scores)),
        notes=(
            f"{N_NEIGHBORS}-NN, {N_FOLDS}-fold stratified, {n_repeats} repeats (seed {settings.seed}), "
            "units of the training half",
            source_note(),
            f"of tables beyond {MAX_ROWS} rows a stratified sample of that many, the same for all methods: "
            + (", ".join(s.table for s in scores if s.n_rows < s.n_rows_in_all) or "none"),
            "± marks tables where a method differs from Euclidean (corrected paired t-test, 5 %, two-sided): "
            "+ better, − worse",
        ),
        numbers={
            "errors": {s.table: {method: e.tolist() for method, e in s.errors.items()} for s in scores},
            "mean_error": mean_error,
            "mean_rank": mean_rank,
        },
    )


def corrected_t_test(difference: np.ndarray, test_share: float) -> float:
    """Two-sided p of a mean difference of 0, after Nadeau and Bengio.

    Training sets overlap, so the variance of the mean of J differences is (1/J + n_test/n_train) S².
    """
    variance = float(difference.var(ddof=1)) if len(difference) > 1 else np.nan
    mean = float(difference.mean())
    if not variance > 0.0:
        return 0.0 if variance == 0.0 and mean != 0.0 else 1.0
    statistic = mean / np.sqrt((1.0 / len(difference) + test_share) * variance)
    return float(2.0 * t.sf(abs(statistic), len(difference) - 1))


def _score(table: Table, n_repeats: int, seed: int, cache: _Cache) -> _Scores:
    reduced = sampled(table, MAX_ROWS, 0)
    splits = list(_splits(reduced, n_repeats, seed))
    outcomes = {
        method: [cache.get(method, split) or cache.put(method, split, _evaluate(learn, split)) for split in splits]
        for method, learn in METHODS.items()
    }
    return _Scores(
        table=table.name,
        n_rows=len(reduced.y),
        n_rows_in_all=len(table.y),
        test_share=splits[0].test_share,
        errors={method: np.array([o.error for o in found]) for method, found in outcomes.items()},
        seconds={method: float(np.mean([o.seconds for o in found])) for method, found in outcomes.items()},
    )


def _splits(table: Table, n_repeats: int, seed: int) -> Iterator[_Split]:
    for k, (train, test) in enumerate(halves(table.y, n_repeats, seed)):
        yield _Split(table.name, *divmod(k, N_FOLDS), Half.of(table, train, test))


def _evaluate(learn: Learn, split: _Split) -> _Outcome:
    distance, seconds = learn(split.half.X_train, split.half.y_train)
    return _Outcome(split.half.error_under(distance), seconds)


class _Cache:
    """Outcomes of the slow peers, one small file each, named by everything they depend on."""

    def __init__(self, folder: Path, fresh: bool):
        self.folder = folder
        self.fresh = fresh

    def get(self, method: str, split: _Split) -> _Outcome | None:
        path = self._path(method, split)
        if method not in CACHED or self.fresh or not path.exists():
            return None
        return _Outcome(**json.loads(path.read_text()))

    def put(self, method: str, split: _Split, outcome: _Outcome) -> _Outcome:
        if method in CACHED:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._path(method, split).write_text(json.dumps(asdict(outcome)))
        return outcome

    def _path(self, method: str, split: _Split) -> Path:
        digest = hashlib.sha256(f"{method} {CACHED.get(method)} {N_NEIGHBORS}, ties to the nearer".encode())
        for array in vars(split.half).values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return self.folder / f"{method}-{split.table}-{split.repeat}-{split.fold}-{digest.hexdigest()[:12]}.json"


def _ranks(scores: _Scores) -> np.ndarray:
    """1 for the smallest mean error; equal errors share their ranks."""
    return rankdata([round(scores.mean(method), 10) for method in METHODS])


def _difference_mark(scores: _Scores, method: str) -> str:
    """'+' where the method is significantly better than the baseline, '−' where it is significantly worse."""
    difference = scores.errors[method] - scores.errors[BASELINE]
    if corrected_t_test(difference, scores.test_share) >= LEVEL:
        return ""
    return "+" if difference.mean() < 0 else "−"


def _checks(scores: list[_Scores], mean_error: dict[str, float], mean_rank: dict[str, float]) -> Iterator[Check]:
    worse = [s.table for s in scores if _difference_mark(s, OURS) == "−"]
    for what, value in (("mean error", mean_error), ("mean rank", mean_rank)):
        best = min((method for method in METHODS if method != OURS), key=value.__getitem__)
        yield Check(f"{what}, against the best other ({best})", value[OURS], _below(value[best]), at_least=False)
    yield Check(
        "tables significantly worse than Euclidean",
        float(len(worse)),
        0.0,
        at_least=False,
        note=", ".join(worse),
    )


def _below(value: float) -> float:
    """Better, not equal: the largest number below."""
    return float(np.nextafter(value, -np.inf))


def _error_table(scores: list[_Scores], mean_error: dict[str, float], mean_rank: dict[str, float]) -> ReportTable:
    rows = [
        (
            s.table,
            s.n_rows,
            *(f"{s.mean(method):.4f}{_difference_mark(s, method) or ' '}" for method in METHODS),
        )
        for s in scores
    ]
    rows.append(("mean error", "", *(f"{mean_error[method]:.4f} " for method in METHODS)))
    rows.append(("mean rank", "", *(f"{mean_rank[method]:.2f} " for method in METHODS)))
    return ReportTable(f"error of {N_NEIGHBORS}-NN", ("table", "rows", *METHODS), tuple(rows))


def _seconds_table(scores: list[_Scores]) -> ReportTable:
    rows = tuple((s.table, s.n_rows, *(s.seconds[method] for method in METHODS)) for s in scores)
    return ReportTable("seconds to learn (peers' may be from an earlier run)", ("table", "rows", *METHODS), rows)
