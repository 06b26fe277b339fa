"""Pictures of a learned metric: panels drawn on axes, and whole figures of them.

No pyplot, so nothing global changes and any back end can show or save what is returned:
``overview(...).savefig("metric.png")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..evaluation import View, intervals
from ..persistence import write_bytes
from ..solvers import Step
from .views import maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..learner import MetricLearner

__all__ = [
    "draw_choosing",
    "draw_convergence",
    "draw_distances",
    "draw_maps",
    "draw_path",
    "draw_spectrum",
    "new_figure",
    "overview",
    "require_matplotlib",
    "save",
]

# The "muted" scheme of Paul Tol: distinct for all common kinds of colour blindness.
_CLASSES = (
    "#332288",
    "#CC6677",
    "#117733",
    "#88CCEE",
    "#AA4499",
    "#999933",
    "#882255",
    "#44AA99",
    "#555555",
    "#C09A2F",
)
_SHAPES = "os^Dv<>pPX"
_BLUE, _ORANGE, _INK, _PALE, _FAINT = "#0077BB", "#CC5500", "#222222", "#777777", "#D0D0D0"
_SMALL: dict[str, Any] = {"fontsize": 8.5, "color": _PALE}
_MOST_CLASSES_NAMED = 10
_MOST_SHOWN = 1500  # rows on a map, drawn at random of more
_MOST_UNSEEN = 1000  # directions that the constraints do not see and a spectrum still shows


def require_matplotlib() -> None:
    """Raise an ImportError that says what to do where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mahalo[plots]'") from None


# -- whole figures --------------------------------------------------------------------------------------------


def overview(
    before: View,
    after: View,
    learner: MetricLearner,
    *,
    title: str = "",
    class_names: Sequence[str] | None = None,
) -> Figure:
    """Everything on one page: maps, histograms, spectrum, convergence."""
    figure, axes = new_figure(2, 3, width=12.5, height=7.8, row_heights=(1.35, 1.0))
    draw_maps(axes[0, :2], before, after, class_names)
    draw_distances(axes[1, :2], before, after)
    draw_spectrum(axes[0, 2], learner)
    draw_convergence(axes[1, 2], learner)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=_INK)
    return figure


def save(figure: Figure, path: str | PathLike, dpi: int = 120) -> Path:
    """Write a figure; a PNG gets a palette of 128 colours, which drawings do not outgrow and which halves the file."""
    path = Path(path)
    kind = path.suffix.lower().lstrip(".") or "png"
    buffer = BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi)
    write_bytes(path, _small_png(buffer) if kind == "png" else buffer.getvalue())
    return path


def _small_png(drawing: BytesIO) -> bytes:
    from PIL import Image  # a dependency of matplotlib

    picture = Image.open(drawing).convert("RGB").quantize(colors=128, dither=Image.Dither.NONE)
    buffer = BytesIO()
    picture.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


# -- panels --------------------------------------------------------------------------------------------------


def draw_maps(axes: Sequence[Axes], before: View, after: View, class_names: Sequence[str] | None) -> None:
    """Maps of the rows, neighbours beside neighbours; on two axes before and after, on one after alone."""
    n = len(before.rows)
    shown = np.arange(n) if n <= _MOST_SHOWN else np.sort(np.random.default_rng(0).permutation(n)[:_MOST_SHOWN])
    planes = maps(euclidean_distances(before.rows[shown]), euclidean_distances(after.rows[shown]))
    for ax, seen, plane in list(zip(axes[::-1], (after, before), planes[::-1], strict=False)):
        _draw_map(ax, plane, seen.labels[shown], class_names)
        _title(ax, seen.name, f"10-NN error {100 * seen.error:.1f} %, ties to nearer rows")
        ax.set_xlabel("map of neighbourhoods (t-SNE)")
    legend = axes[1].get_legend() if len(axes) > 1 else None
    if legend is not None:  # the one on the left serves both
        legend.remove()


def _draw_map(ax: Axes, plane: np.ndarray, labels: np.ndarray, class_names: Sequence[str] | None) -> None:
    classes = np.unique(labels)
    names = [str(c) for c in classes] if class_names is None else [str(n) for n in class_names]
    if len(names) != len(classes):
        raise ValueError(f"class_names must name the {len(classes)} classes of the held-out rows; got {len(names)}.")
    # A class that is called by one character is drawn as that character: colours then need not be told apart.
    as_glyphs = all(len(n) == 1 and n.isascii() and n.isalnum() for n in names)
    for k, (c, name) in enumerate(zip(classes, names, strict=True)):
        points = plane[labels == c]
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=22 if as_glyphs else 28,
            marker=f"${name}$" if as_glyphs else _SHAPES[k % len(_SHAPES)],
            color=_CLASSES[k % len(_CLASSES)],
            linewidths=0.1 if as_glyphs else 0.5,
            edgecolors=None if as_glyphs else "white",
            label=name,
        )
    if not as_glyphs and len(classes) <= _MOST_CLASSES_NAMED:
        ax.legend(loc="best", frameon=False, fontsize=9, handletextpad=0.1, borderaxespad=0.2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(_FAINT)


def draw_distances(axes: Sequence[Axes], before: View, after: View) -> None:
    """Histograms of alike and unalike pairs; on two axes before and after, on one after alone.

    Distances are in units of their median, which takes the scale out and leaves the AUC as it is.
    """
    scaled = []
    for seen in (before, after):
        unit = float(np.median(np.concatenate([seen.alike, seen.unalike]))) or 1.0
        scaled.append((seen.alike / unit, seen.unalike / unit))
    end = float(max(np.percentile(np.concatenate(both), 99) for both in scaled))
    bins = np.linspace(0.0, min(max(end, 2.0), 2.5), 50)
    tallest = 0.0
    for ax, seen, both in zip(axes[::-1], (after, before), scaled[::-1], strict=False):
        for values, colour in zip(both, (_BLUE, _ORANGE), strict=True):
            heights = np.histogram(values, bins)[0] / (len(values) * np.diff(bins))
            tallest = max(tallest, float(heights.max()))
            ax.stairs(heights, bins, fill=True, color=colour, alpha=0.3)
            ax.stairs(heights, bins, color=colour, linewidth=1.5)
        _title(ax, seen.name, f"pair AUC {seen.auc:.3f}")
        beyond = 100 * float(np.mean(np.concatenate(both) > bins[-1]))
        _key(
            ax,
            (f"{len(both[0]):,} alike pairs", _BLUE),
            (f"{len(both[1]):,} unalike pairs", _ORANGE),
            (f"{beyond:.1f} % beyond →" if beyond >= 0.05 else "", _PALE),
        )
        ax.set_xlabel("distance / median distance")
        ax.set_xlim(0.0, bins[-1])
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    for ax in axes:
        ax.set_ylim(0.0, 1.15 * tallest)


def draw_spectrum(ax: Axes, learner: MetricLearner) -> None:
    """Eigenvalues of W0^-½ W W0^-½: those of F, and what the metric keeps of the prior in directions outside it."""
    metric = learner.metric_
    values = np.linalg.eigvalsh(metric.F)
    unseen = min(metric.n_outputs - len(values), _MOST_UNSEEN)
    kept = np.full(unseen, metric.eta * float(metric.coordinates.residual))
    values = np.sort(np.maximum(np.concatenate([values, kept]), 1e-12))[::-1]
    position = np.arange(1, len(values) + 1)
    ax.set_yscale("log")
    _plain_numbers(ax, values)
    low, high = min(values[-1], 0.6), max(values[0], 1.7)
    margin = (high / low) ** 0.05
    ax.set_ylim(low / margin, high * margin)
    ax.axhline(1.0, color=_PALE, linewidth=1, linestyle="--", zorder=0)
    ax.vlines(position, 1.0, values, color=_BLUE, linewidth=1, alpha=0.45)
    ax.plot(position, values, "o", color=_BLUE, markersize=3.5)
    _title(ax, "learned metric", "eigenvalues")
    stretched, shrunk = int((values > 1.05).sum()), int((values < 0.95).sum())
    _key(ax, (f"{_count(stretched, 'direction')} stretched", _INK), (f"{shrunk} shrunk", _INK))
    _name_level(ax, 1.0, "start = 1", below=True)
    ax.set_xlabel("direction, most stretched first")
    ax.set_xlim(0.0, len(values) + 1.0)


def draw_convergence(ax: Axes, learner: MetricLearner) -> None:
    """Shaded bands are the stages of the path, γ above them; the gap is that of the problem at the stage's γ."""
    history: Sequence[Step] = learner.history_
    gap = np.array([step.relative_gap for step in history])
    gap = np.where(np.isfinite(gap) & (gap > 0), gap, np.nan)
    gamma = np.array([step.gamma for step in history])
    n = len(gap)
    _title(ax, "proof", f"relative gap {learner.certificate_.relative_gap:.0e} after {_count(n, 'step')}", pad=17)
    ax.set_yscale("log")
    ax.set_xlabel("step of the solver")
    ax.set_xlim(0.5, max(n, 1) + 0.5)
    if not n:
        ax.set_ylim(learner.tol / 10, learner.tol * 10)
    ax.axhline(learner.tol, color=_PALE, linewidth=1, linestyle="--", zorder=1)
    _name_level(ax, learner.tol, f"asked for {learner.tol:.0e}")
    if not n:
        ax.set_xticks([])
        ax.text(0.5, 0.75, "the start was close enough", transform=ax.transAxes, ha="center", **_SMALL)
        return
    starts = [0, *(np.flatnonzero(np.diff(gamma) != 0) + 1), n]
    free_from = 0.0
    for stage, (a, b) in enumerate(pairwise(starts)):
        if stage % 2 == 0:
            ax.axvspan(a + 0.5, b + 0.5, color=_FAINT, alpha=0.35, linewidth=0, zorder=0)
        ax.plot(np.arange(a, b) + 1, gap[a:b], "o-", color=_BLUE, linewidth=1.5, markersize=4.5 if n <= 50 else 2)
        label = _brief(gamma[a]) if stage else f"γ = {_brief(gamma[a])}"
        half = 0.01 * len(label) + 0.006
        middle = max((a + b) / (2 * n), half)
        if middle - half >= free_from:
            ax.text(middle, 1.01, label, transform=ax.transAxes, ha="center", va="bottom", **_SMALL)
            free_from = middle + half
    ax.locator_params(axis="x", integer=True)


def draw_choosing(ax: Axes, learner: Any) -> None:
    """Mean score over folds against γ, of the best variant of every prior and strategy, with 95 % intervals."""
    results = learner.cv_results_
    gamma, mean = results["gamma"], results["mean_score"]
    half = np.array([intervals.of_mean(scores) or 0.0 for scores in results["scores"]])  # of one fold there is none
    what = [f"{prior}, {strategy} pairs" for prior, strategy in zip(results["prior"], results["strategy"], strict=True)]
    for k, name in enumerate(dict.fromkeys(what)):
        of_name = np.array([one == name for one in what])
        best = [max(np.flatnonzero(of_name & (gamma == g)), key=lambda row: mean[row]) for g in np.unique(gamma)]
        colour = _CLASSES[k % len(_CLASSES)]
        ax.plot(gamma[best], mean[best], "o-", color=colour, markersize=3.5, linewidth=1.5, label=name)
        ax.fill_between(gamma[best], (mean - half)[best], (mean + half)[best], color=colour, alpha=0.12, linewidth=0)
    ax.plot([learner.gamma_], [learner.best_score_], "o", color=_INK, fillstyle="none", markersize=10)
    ax.set_xscale("log")
    ax.set_xlabel("γ; at the far left nothing is learned")
    ax.legend(loc="best", frameon=False, fontsize=9)
    _title(ax, "choosing", f"score over {results['scores'].shape[1]} folds, γ = {_brief(learner.gamma_)} chosen")


def draw_path(ax: Axes, path: Any) -> None:
    """Eigenvalues of the learned metric relative to its prior against γ."""
    order = np.argsort(path.gammas)
    spectra = [np.linalg.eigvalsh(path.metrics[k].F)[::-1] for k in order]
    values = np.array([spectrum[: min(map(len, spectra))] for spectrum in spectra])
    ax.plot(path.gammas[order], np.maximum(values, 1e-300), color=_BLUE, linewidth=1.2, alpha=0.6)
    ax.axhline(1.0, color=_PALE, linewidth=1, linestyle="--", zorder=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _plain_numbers(ax, values)
    ax.set_xlabel("γ")
    _title(ax, "path", f"{values.shape[1]} eigenvalues, {len(order)} values of γ")


def _brief(number: float) -> str:
    """Two digits, without an exponent up to 99,999."""
    short = f"{number:.2g}"
    return f"{float(short):g}" if number < 1e5 else short


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _plain_numbers(ax: Axes, values: np.ndarray) -> None:
    """Label a logarithmic axis 0.1, 1, 10; with 0.2, 0.5, 2, 5 between where it spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    few = values.max(initial=1.0) < 100 * max(values.min(initial=1.0), 1e-300)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _title(ax: Axes, name: str, what: str, pad: float = 7.0) -> None:
    ax.set_title(f"{name}: {what}", loc="left", fontsize=11, color=_INK, pad=pad)


def _key(ax: Axes, *entries: tuple[str, str]) -> None:
    """Names in the colour of what they name, one below the other in the upper right corner."""
    for k, (name, colour) in enumerate(entries):
        ax.annotate(
            name,
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(-4, -6 - 14 * k),
            textcoords="offset points",
            ha="right",
            va="top",
            color=colour,
            fontsize=9.5,
        )


def _name_level(ax: Axes, level: float, name: str, below: bool = False) -> None:
    """A word beside a horizontal line."""
    ax.annotate(
        name,
        (0.0, level),
        xycoords=("axes fraction", "data"),
        xytext=(4, -3 if below else 3),
        textcoords="offset points",
        va="top" if below else "bottom",
        **_SMALL,
    )


def new_figure(
    n_rows: int, n_cols: int, *, width: float, height: float, row_heights: Sequence[float] | None = None
) -> tuple[Figure, Any]:
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    axes = figure.subplots(n_rows, n_cols, squeeze=False, height_ratios=row_heights)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes
