"""Error of 10-NN after learning, against Euclidean, inverse covariance, LDA, NCA and LMNN on the same splits."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from .settings import CACHE, ROOT, Settings
from .tables import Table, load_tables, source_note

__all__ = ["run"]

OURS = "mahalo"
BASELINE = "Euclidean"
N_REPEATS = 5
N_FOLDS = 2
# Beyond this LMNN takes minutes per fit; larger tables are reduced to a stratified sample, for all methods.
MAX_ROWS = 3200
LEVEL = 0.05
RIVALS = ("LDA", "NCA", "LMNN")
SPACES = ("unlearned", "LDA", "linear", "quadratic", "local", "rbf")  # simpler ones first
# Errors on the same splits, seeds 0 and 1, of the default that did not choose among spaces yet.
EARLIER = ROOT / "docs" / "results" / "bench" / "earlier-default.json"
CURVED = "ionosphere"  # the table that gains most by a curved space: the others must gain without it


@dataclass(frozen=True)
class _Learned:
    """What was learned, the seconds it took, and the space that was chosen, if one was."""

    distance: Distance
    seconds: float
    space: str = ""


Learn = Callable[[np.ndarray, np.ndarray], _Learned]
"""(X, y) → what was learned from them."""


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
    space: str = ""


@dataclass(frozen=True)
class _Scores:
    """Errors of every method on one table, one per split, how long learning took, and which spaces ours chose.

    `earlier` has the errors of the earlier default on the same splits, where there is a record of them.
    """

    table: str
    n_rows: int
    n_rows_in_all: int
    test_share: float
    errors: dict[str, np.ndarray]
    seconds: dict[str, float]
    spaces: Counter[str]
    earlier: np.ndarray | None

    def mean(self, method: str) -> float:
        return float(self.errors[method].mean())


def _timed(learn: Callable[[np.ndarray, np.ndarray, int], Distance]) -> Learn:
    def timed(X: np.ndarray, y: np.ndarray) -> _Learned:
        start = time.perf_counter()
        return _Learned(learn(X, y, 0), time.perf_counter() - start)

    return timed


def lmnn(X: np.ndarray, y: np.ndarray) -> _Learned:
    peer = fit_lmnn(X, y)
    return _Learned(lambda Z: Z @ peer.matrix.T, peer.seconds)


def default_learner(X: np.ndarray, y: np.ndarray) -> _Learned:
    """Judged by the distances of its metric: `transform` is approximate in the space of a kernel."""
    start = time.perf_counter()
    learner = MetricLearnerCV().fit(X, y)
    return _Learned(learner.metric_, time.perf_counter() - start, learner.space_)


METHODS: dict[str, Learn] = {
    BASELINE: _timed(rivals.euclidean),
    "inverse covariance": _timed(rivals.inverse_covariance),
    "LDA": _timed(rivals.lda),
    "NCA": _timed(rivals.nca),
    "LMNN": lmnn,
    OURS: default_learner,
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
        tables=(_error_table(scores, mean_error, mean_rank), _space_table(scores), _seconds_table(scores)),
        notes=(
            f"{N_NEIGHBORS}-NN, {N_FOLDS}-fold stratified, {n_repeats} repeats (seed {settings.seed}), "
            "units of the training half",
            source_note(),
            f"of tables beyond {MAX_ROWS} rows a stratified sample of that many, the same for all methods: "
            + (", ".join(s.table for s in scores if s.n_rows < s.n_rows_in_all) or "none"),
            "± marks tables where a method differs from Euclidean (corrected paired t-test, 5 %, two-sided): "
            "+ better, − worse",
            _earlier_note(scores),
        ),
        numbers={
            "errors": {s.table: {method: e.tolist() for method, e in s.errors.items()} for s in scores},
            "mean_error": mean_error,
            "mean_rank": mean_rank,
            "spaces": {s.table: dict(s.spaces) for s in scores},
            "earlier": {s.table: s.earlier.tolist() for s in scores if s.earlier is not None},
            "learner": repr(MetricLearnerCV()),
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
    errors = {method: np.array([o.error for o in found]) for method, found in outcomes.items()}
    return _Scores(
        table=table.name,
        n_rows=len(reduced.y),
        n_rows_in_all=len(table.y),
        test_share=splits[0].test_share,
        errors=errors,
        seconds={method: float(np.mean([o.seconds for o in found])) for method, found in outcomes.items()},
        spaces=Counter(o.space for o in outcomes[OURS]),
        earlier=_earlier_errors(table.name, seed, errors[BASELINE]),
    )


def _splits(table: Table, n_repeats: int, seed: int) -> Iterator[_Split]:
    for k, (train, test) in enumerate(halves(table.y, n_repeats, seed)):
        yield _Split(table.name, *divmod(k, N_FOLDS), Half.of(table, train, test))


def _evaluate(learn: Learn, split: _Split) -> _Outcome:
    learned = learn(split.half.X_train, split.half.y_train)
    return _Outcome(split.half.error_under(learned.distance), learned.seconds, learned.space)


def _earlier_errors(table: str, seed: int, baseline: np.ndarray, record: Path = EARLIER) -> np.ndarray | None:
    """Errors of the earlier default on the same splits; None without a record, or if its Euclidean errors differ from
    `baseline` (other rows, or other splits)."""
    found = json.loads(record.read_text(encoding="utf-8"))["seeds"].get(str(seed), {}).get(table)
    if found is None or not np.allclose(found[BASELINE][: len(baseline)], baseline, rtol=0, atol=1e-12):
        return None
    return np.array(found[OURS][: len(baseline)])


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


def _difference_mark(scores: _Scores, method: str, baseline: np.ndarray | None = None) -> str:
    """'+' where the method is significantly better than the baseline (Euclidean), '−' where it is significantly
    worse."""
    difference = scores.errors[method] - (scores.errors[BASELINE] if baseline is None else baseline)
    if corrected_t_test(difference, scores.test_share) >= LEVEL:
        return ""
    return "+" if difference.mean() < 0 else "−"


def _checks(scores: list[_Scores], mean_error: dict[str, float], mean_rank: dict[str, float]) -> Iterator[Check]:
    for rival in RIVALS:
        required = _below(mean_error[rival])
        yield Check(f"mean error, against {rival}", mean_error[OURS], required, at_least=False)
    best = min((method for method in METHODS if method != OURS), key=mean_rank.__getitem__)
    required = _below(mean_rank[best])
    yield Check(f"mean rank, against the best other ({best})", mean_rank[OURS], required, at_least=False)
    yield _none_worse(BASELINE, [s.table for s in scores if _difference_mark(s, OURS) == "−"])
    yield from _earlier_checks([s for s in scores if s.earlier is not None])


def _earlier_checks(scores: list[_Scores]) -> Iterator[Check]:
    """Ours beside the earlier default, over tables with a record of it."""
    others = [s for s in scores if s.table != CURVED]
    for which, part, limit in (("", scores, 0.85), (f" without {CURVED}", others, 0.95)):
        if part:
            ratio = _mean([s.mean(OURS) for s in part]) / _mean([_mean(s.earlier) for s in part])
            yield Check(f"mean error{which} over that of the earlier default", ratio, limit, at_least=False)
    if scores:
        worse = [s.table for s in scores if _difference_mark(s, OURS, s.earlier) == "−"]
        yield _none_worse("the earlier default", worse)


def _none_worse(baseline: str, worse: list[str]) -> Check:
    name = f"tables significantly worse than {baseline}"
    return Check(name, float(len(worse)), 0.0, at_least=False, note=", ".join(worse))


def _mean(values: Sequence[float] | np.ndarray) -> float:
    return float(np.mean(values))


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


def _space_table(scores: list[_Scores]) -> ReportTable:
    rows = tuple((s.table, s.n_rows, *(s.spaces[space] or "" for space in SPACES)) for s in scores)
    return ReportTable(f"how often {OURS} chose each space", ("table", "rows", *SPACES), rows)


def _earlier_note(scores: list[_Scores]) -> str:
    missing = [s.table for s in scores if s.earlier is None]
    without = f"; no record on these splits of {', '.join(missing)}" if missing else ""
    return f"the earlier default chose among linear metrics alone; its errors are in {EARLIER.name}{without}"


def _seconds_table(scores: list[_Scores]) -> ReportTable:
    rows = tuple((s.table, s.n_rows, *(s.seconds[method] for method in METHODS)) for s in scores)
    return ReportTable("seconds to learn (peers' may be from an earlier run)", ("table", "rows", *METHODS), rows)
