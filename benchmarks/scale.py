"""Kernels and many dimensions: what fits and tables of distances cost beside the product they cannot do without."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from mahalo import Constraints, MetricLearner

from . import growth
from .problems import simulated_classes
from .report import Check, Report, Table
from .scale_data import random_pairs
from .settings import ROOT, Settings
from .sparse_runner import Sizes
from .timing import alternate, seconds_of

__all__ = ["run"]

TOL = 1e-4
SHRINK = 20  # how much smaller the problems of a quick run are


@dataclass(frozen=True)
class _Ratio:
    """Seconds of something against seconds of the product it is measured by."""

    name: str
    seconds: float
    product: str
    product_seconds: float
    required: float
    relative_gap: float | None = None
    work: str = ""

    @property
    def ratio(self) -> float:
        return self.seconds / self.product_seconds

    def check(self, quick: bool) -> Check:
        # Fixed costs weigh more in small problems: a quick run bounds the ratio from above.
        return Check(f"{self.name}: times {self.product}", self.ratio, self.required, at_least=False, is_bound=quick)

    def row(self) -> tuple:
        gap = "" if self.relative_gap is None else f"{self.relative_gap:.1e}"
        return (self.name, self.seconds, self.product_seconds, self.ratio, gap, self.work)


def run(settings: Settings) -> Report:
    quick = settings.quick
    sparse, sparse_checks, sparse_table = _sparse(quick)
    ratios = [*sparse, _million_pairs(quick), *_rbf(quick), *_distances(quick)]
    gaps = [one.relative_gap for one in ratios if one.relative_gap is not None]
    series = growth.measure_all(quick, repeats=1 if quick else 2)
    checks = (
        *(one.check(quick) for one in ratios),
        *sparse_checks,
        Check("largest relative gap of these fits", max(gaps), TOL, at_least=False),
        _memory_check(quick),
        *(
            Check(f"slope of time in {one.name}, upper decade", one.last_slope, one.promised + 0.15, at_least=False)
            for one in series
        ),
    )
    columns = ("", "seconds", "product (s)", "ratio", "relative gap", "steps / Hessian products")
    return Report(
        name="scale",
        checks=checks,
        tables=(Table("medians", columns, tuple(one.row() for one in ratios)), sparse_table, _growth_table(series)),
        notes=(
            "texts: 40 words of 5,000 in each row, 5 topics in each of 20 classes; vectors: classes among nuisances",
            "time in features: r × r matrices (slope up to 3) where the metric is exact; over a basis the basis alone",
            _picture(series, quick),
        ),
        numbers={"growth": [_numbers(one) for one in series]},
    )


# -- the ratios --------------------------------------------------------------------------------------------------


def _sparse(quick: bool) -> tuple[list[_Ratio], list[Check], Table]:
    """A million sparse rows, with and without the residual, each in a process of its own."""
    sizes = Sizes(1_000_000 // SHRINK, pairs_per_class=2_500 // SHRINK) if quick else Sizes(1_000_000)
    ratios, checks, rows = [], [], []
    for residual in (True, False):
        got = _in_process(dataclasses.replace(sizes, residual=residual))
        name = f"{sizes.n_rows:,} sparse rows, k = {sizes.k}, {got['n_pairs']:,} pairs" + (
            "" if residual else ", no residual"
        )
        ratios.append(
            _Ratio(
                name,
                got["fit_seconds"],
                "X·U",
                got["product_seconds"],
                5.0,
                got["relative_gap"],
                f"{got['n_iter']} / {got['hessian_products']}",
            )
        )
        gigabytes = got["bytes_beyond_data"] / 2**30
        checks.append(Check(f"{name}: GB beyond the data", gigabytes, 2.0, at_least=False))
        rows.append((name, got["data_bytes"] / 2**30, gigabytes, got["auc_before"], got["auc"]))
    columns = ("", "data (GB)", "beyond them (GB)", "pair AUC of new rows, Euclidean", "learned")
    return ratios, checks, Table("sparse rows", columns, tuple(rows))


def _in_process(sizes: Sizes) -> dict:
    command = [sys.executable, "-m", f"{__package__}.sparse_runner", json.dumps(dataclasses.asdict(sizes))]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def _million_pairs(quick: bool) -> _Ratio:
    n, m, r = (1_000, 50_000, 128) if quick else (20_000, 1_000_000, 128)
    X, y = simulated_classes(r, n_samples=n, n_classes=50)
    constraints = random_pairs(y, m)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((m, r)), rng.standard_normal((r, r))
    learner = MetricLearner(gamma=0.01, tol=TOL)
    seconds = _turns(lambda: learner.fit(X, constraints=constraints), lambda: A @ B, rounds=2)
    return _fit_ratio(f"{m:,} pairs, {n:,} points, d = {r}", learner, seconds, f"{m:,} × {r} by {r} × {r}", 60.0)


def _rbf(quick: bool) -> list[_Ratio]:
    n = 400 if quick else 2_000
    X, y = simulated_classes(30, n_samples=n, n_classes=20)
    constraints = Constraints.from_labels(y, pairs_per_class=n // 10, random_state=0)
    params = {"gamma": 1.0 / X.shape[1]}
    K0 = rbf_kernel(X, **params)
    ratios = []
    for gamma, required in ((0.01, 20.0), (1.0, 80.0)):
        learner = MetricLearner(kernel="rbf", kernel_params=params, gamma=gamma, tol=TOL)

        def fit(learner=learner):
            return learner.fit(X, constraints=constraints)

        seconds = _turns(fit, lambda: np.linalg.eigh(K0), rounds=1)
        name = f"RBF, {n:,} points, {constraints.n_constraints:,} pairs, γ = {gamma:g}"
        ratios.append(_fit_ratio(name, learner, seconds, "eigh of K0", required))
    return ratios


def _distances(quick: bool) -> list[_Ratio]:
    n = 2_000 if quick else 10_000
    rng = np.random.default_rng(0)
    ratios = []
    for r, required in ((128, 2.0), (512, 1.5)):
        X, y = simulated_classes(r, n_samples=2_000)
        metric = MetricLearner(gamma=0.1).fit(X, y).metric_
        new, stored = rng.standard_normal((n, r)), rng.standard_normal((n, r))
        root = metric.transform(np.eye(r))
        tasks = {
            "ours": lambda metric=metric, new=new, stored=stored: metric.distances(new, stored),
            "product": lambda root=root, new=new, stored=stored: (new @ root) @ (stored @ root).T,
        }
        seconds = alternate(tasks, repeats=5)
        name = f"distances, {n:,} × {n:,}, r = {r}"
        ratios.append(_Ratio(name, seconds["ours"], "its products", seconds["product"], required))
    return ratios


def _turns(fit, product, rounds: int) -> tuple[float, float]:
    """Median seconds of both: a product to warm up, then product, fit, product and so on."""
    product()
    fits, products = [], [seconds_of(product)]
    for _ in range(rounds):
        fits.append(seconds_of(fit))
        products.append(seconds_of(product))
    return median(fits), median(products)


def _fit_ratio(name: str, learner: MetricLearner, seconds, product: str, required: float) -> _Ratio:
    work = f"{learner.n_iter_} / {sum(step.inner_iterations for step in learner.history_)}"
    return _Ratio(name, seconds[0], product, seconds[1], required, learner.certificate_.relative_gap, work)


def _memory_check(quick: bool) -> Check:
    """A kernel fit needs room for its constrained points, however many others there are."""
    n_constrained, n_more = 300, 5_000 if quick else 100_000
    X, y = simulated_classes(20, n_samples=n_constrained + n_more)
    constraints = Constraints.from_labels(y[:n_constrained], pairs_per_class=60, random_state=0)
    constraints.n_rows = None

    def peak(rows: int) -> int:
        tracemalloc.start()
        MetricLearner(kernel="rbf").fit(X[:rows], constraints=constraints)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(n_constrained)  # imports, too, take room
    ratio = peak(len(X)) / peak(n_constrained)
    name = f"RBF, {n_constrained} constrained among {len(X):,} rows: times the memory of those alone"
    return Check(name, ratio, 1.5, at_least=False)


# -- growth ------------------------------------------------------------------------------------------------------


def _growth_table(series) -> Table:
    columns = (
        "time of a fit",
        "from",
        "to",
        "seconds",
        "slope",
        "upper decade",
        "promised",
        "Hessian products",
        "fixed",
    )
    rows = tuple(
        (
            one.name,
            f"{one.sizes[0]:,}",
            f"{one.sizes[-1]:,}",
            " ".join(f"{s:.3g}" for s in one.seconds),
            f"{one.slope:.2f}",
            f"{one.last_slope:.2f}",
            f"≤ {one.promised:g}",
            " ".join(map(str, one.products)),
            one.fixed,
        )
        for one in series
    )
    return Table("growth", columns, rows)


def _numbers(one: growth.Series) -> dict:
    return {
        "name": one.name,
        "fixed": one.fixed,
        "sizes": one.sizes.tolist(),
        "seconds": one.seconds.tolist(),
        "slope": one.slope,
        "upper_decade_slope": one.last_slope,
    }


def _picture(series, quick: bool) -> str:
    if find_spec("matplotlib") is None:
        return "no picture of the growth: matplotlib is not installed"
    path = growth.draw(series, ROOT / "out" / ("growth-quick.png" if quick else "growth.png"))
    return f"picture of the growth: {path.relative_to(ROOT)}"
