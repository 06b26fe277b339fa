"""Panels drawn on axes of matplotlib, and the overview figure made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..evaluation import PairDistances, View, intervals
from ..metric import Metric
from ..solvers import Step
from .figure import (
    BLUE,
    CLASS_COLOURS,
    FAINT,
    INK,
    ORANGE,
    PALE,
    SMALL,
    new_figure,
    plural,
    set_plain_log_ticks,
    set_title,
    short_number,
    write_at_level,
    write_key,
)
from .histogram import pair_histograms
from .maps import neighbor_maps
from .spectrum import learned_spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

_MARKERS = "os^Dv<>pPX"
_MOST_CLASSES_NAMED = 10
_MOST_MAPPED = 1500  # rows on a map, a random sample of more


@dataclass(frozen=True)
class Convergence:
    """Steps of a solver, the relative gap of its solution, and the gap it was to reach."""

    history: Sequence[Step]
    relative_gap: float
    tol: float


def overview(
    before: View,
    after: View,
    metric: Metric,
    convergence: Convergence,
    *,
    title: str = "",
    class_names: Sequence[str] | None = None,
) -> Figure:
    """Return one figure with maps, histograms, spectrum and convergence."""
    figure, axes = new_figure(2, 3, width=12.5, height=7.8, row_heights=(1.35, 1.0))
    draw_maps(list(axes[0, :2]), before, after, class_names)
    draw_distances(list(axes[1, :2]), before, after)
    draw_spectrum(axes[0, 2], metric)
    draw_convergence(axes[1, 2], convergence)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
    return figure


def draw_maps(axes: Sequence[Axes], before: View, after: View, class_names: Sequence[str] | None) -> None:
    """Draw t-SNE maps of held-out rows: before and after on two axes, after alone on one."""
    n = len(before.rows)
    shown = np.arange(n) if n <= _MOST_MAPPED else np.sort(np.random.default_rng(0).permutation(n)[:_MOST_MAPPED])
    planes = neighbor_maps(euclidean_distances(before.rows[shown]), euclidean_distances(after.rows[shown]))
    for ax, (side, plane) in _on_axes(axes, *zip((before, after), planes, strict=True)):
        _draw_map(ax, plane, side.labels[shown], class_names)
        set_title(ax, side.name, f"10-NN error {100 * side.error:.1f} %, ties to nearer rows")
        ax.set_xlabel("map of neighbourhoods (t-SNE)")
    legend = axes[1].get_legend() if len(axes) > 1 else None
    if legend is not None:  # that of the left map serves both
        legend.remove()


def _on_axes(axes: Sequence[Axes], before: T, after: T) -> list[tuple[Axes, T]]:
    """Return each axes with what is drawn on it: before and after on two, after alone on one."""
    return list(zip(axes, (before, after)[-len(axes) :], strict=True))


def _draw_map(ax: Axes, plane: np.ndarray, labels: np.ndarray, class_names: Sequence[str] | None) -> None:
    classes = np.unique(labels)
    names = [str(c) for c in classes] if class_names is None else [str(n) for n in class_names]
    if len(names) != len(classes):
        raise ValueError(f"class_names must name the {len(classes)} classes of the held-out rows; got {len(names)}.")
    # A class with a name of one character is drawn as that character, so that colours need not be told apart.
    as_glyphs = all(len(n) == 1 and n.isascii() and n.isalnum() for n in names)
    for k, (c, name) in enumerate(zip(classes, names, strict=True)):
        points = plane[labels == c]
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=22 if as_glyphs else 28,
            marker=f"${name}$" if as_glyphs else _MARKERS[k % len(_MARKERS)],
            color=CLASS_COLOURS[k % len(CLASS_COLOURS)],
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
    ax.spines[:].set_color(FAINT)


def draw_distances(axes: Sequence[Axes], before: View, after: View) -> None:
    """Draw histograms of similar and dissimilar pairs: before and after on two axes, after alone on one.

    Distances are in units of their median, which removes the scale and leaves the AUC as it is.
    """
    sides = []
    for side in (before, after):
        distances = np.concatenate([side.similar, side.dissimilar])
        sides.append(PairDistances.of(distances, np.arange(len(distances)) < len(side.similar)))
    for ax, (side, drawn) in _on_axes(axes, *zip((before, after), pair_histograms(sides), strict=True)):
        for heights, colour in ((drawn.similar, BLUE), (drawn.dissimilar, ORANGE)):
            ax.stairs(heights, drawn.edges, fill=True, color=colour, alpha=0.3)
            ax.stairs(heights, drawn.edges, color=colour, linewidth=1.5)
        set_title(ax, side.name, f"pair AUC {side.auc:.3f}")
        write_key(
            ax, (f"{drawn.n_similar:,} similar pairs", BLUE), (f"{drawn.n_dissimilar:,} dissimilar pairs", ORANGE)
        )
        ax.set_xlabel("distance / median distance (last bar: all beyond)")
        ax.set_xlim(0.0, drawn.edges[-1])
        ax.set_ylim(0.0, 1.15 * drawn.top)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)


def draw_spectrum(ax: Axes, metric: Metric) -> None:
    """Draw the eigenvalues of W0^-½ W W0^-½."""
    spectrum = learned_spectrum(metric)
    values = spectrum.values
    ax.set_yscale("log")
    set_plain_log_ticks(ax, values)
    low, high = min(values[-1], 0.6), max(values[0], 1.7)
    margin = (high / low) ** 0.05
    ax.set_ylim(low / margin, high * margin)
    ax.axhline(1.0, color=PALE, linewidth=1, linestyle="--", zorder=0)
    ax.vlines(spectrum.directions, 1.0, values, color=BLUE, linewidth=1, alpha=0.45)
    ax.plot(spectrum.directions, values, "o", color=BLUE, markersize=3.5)
    set_title(ax, "learned metric", "eigenvalues")
    stretched = f"{plural(spectrum.n_stretched, 'direction')} stretched"
    write_key(ax, (stretched, INK), (f"{spectrum.n_shrunk} shrunk", INK))
    write_at_level(ax, 1.0, "prior = 1", below=True)
    ax.set_xlabel("direction, most stretched first")
    ax.set_xlim(0.0, spectrum.n_directions + 1.0)


def draw_convergence(ax: Axes, convergence: Convergence) -> None:
    """Draw the relative gap after every step, in shaded bands for the stages of the path, with γ above them.

    The gap is that of the problem at the γ of its stage.
    """
    history, tol = convergence.history, convergence.tol
    gap = np.array([step.relative_gap for step in history])
    gap = np.where(np.isfinite(gap) & (gap > 0), gap, np.nan)
    gamma = np.array([step.gamma for step in history])
    n = len(gap)
    set_title(ax, "proof", f"relative gap {convergence.relative_gap:.0e} after {plural(n, 'step')}", pad=17)
    ax.set_yscale("log")
    ax.set_xlabel("step of the solver")
    ax.set_xlim(0.5, max(n, 1) + 0.5)
    if not n:
        ax.set_ylim(tol / 10, tol * 10)
    ax.axhline(tol, color=PALE, linewidth=1, linestyle="--", zorder=1)
    write_at_level(ax, tol, f"tol = {tol:.0e}")
    if not n:
        ax.set_xticks([])
        ax.text(0.5, 0.75, "the prior met the tolerance", transform=ax.transAxes, ha="center", **SMALL)
        return
    starts = [0, *(np.flatnonzero(np.diff(gamma) != 0) + 1), n]
    free_from = 0.0
    for stage, (a, b) in enumerate(pairwise(starts)):
        if stage % 2 == 0:
            ax.axvspan(a + 0.5, b + 0.5, color=FAINT, alpha=0.35, linewidth=0, zorder=0)
        ax.plot(np.arange(a, b) + 1, gap[a:b], "o-", color=BLUE, linewidth=1.5, markersize=4.5 if n <= 50 else 2)
        label = short_number(gamma[a]) if stage else f"γ = {short_number(gamma[a])}"
        half = 0.01 * len(label) + 0.006
        middle = max((a + b) / (2 * n), half)
        if middle - half >= free_from:
            ax.text(middle, 1.01, label, transform=ax.transAxes, ha="center", va="bottom", **SMALL)
            free_from = middle + half
    ax.locator_params(axis="x", integer=True)


def draw_scores(ax: Axes, results: Mapping, best: int) -> None:
    """Draw mean scores over folds against γ, with 95 % intervals, and mark the candidate number `best`.

    `results` are the `cv_results_` of a `MetricLearnerCV`. A curve for each space, prior and strategy has their best
    candidate at every γ.
    """
    scored = np.flatnonzero(np.isfinite(results["mean_score"]))
    gamma, mean = results["gamma"], results["mean_score"]
    half = np.array([intervals.of_mean(scores) or 0.0 for scores in results["scores"]])  # None for a single fold
    kinds = [
        f"{prior}, {strategy} pairs" for prior, strategy in zip(results["prior"], results["strategy"], strict=True)
    ]
    if len(set(results["space"])) > 1:
        kinds = [f"{space}: {kind}" for space, kind in zip(results["space"], kinds, strict=True)]
    for k, name in enumerate(dict.fromkeys(kinds)):
        own = np.array([row for row in scored if kinds[row] == name], dtype=np.intp)
        if not len(own):
            continue
        rows = [max(own[gamma[own] == g], key=lambda row: mean[row]) for g in np.unique(gamma[own])]
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        ax.plot(gamma[rows], mean[rows], "o-", color=colour, markersize=3.5, linewidth=1.5, label=name)
        ax.fill_between(gamma[rows], (mean - half)[rows], (mean + half)[rows], color=colour, alpha=0.12, linewidth=0)
    ax.plot([gamma[best]], [mean[best]], "o", color=INK, fillstyle="none", markersize=10)
    ax.set_xscale("log")
    ax.set_xlabel("γ; at the far left the prior alone")
    ax.legend(loc="best", frameon=False, fontsize=9)
    set_title(ax, "choosing", f"score over {results['scores'].shape[1]} folds, γ = {short_number(gamma[best])} chosen")


def draw_path(ax: Axes, gammas: np.ndarray, metrics: Sequence[Metric]) -> None:
    """Draw the eigenvalues of metrics relative to their prior against γ."""
    order = np.argsort(gammas)
    spectra = [np.linalg.eigvalsh(metrics[k].F)[::-1] for k in order]
    values = np.array([spectrum[: min(map(len, spectra))] for spectrum in spectra])
    ax.plot(gammas[order], np.maximum(values, 1e-300), color=BLUE, linewidth=1.2, alpha=0.6)
    ax.axhline(1.0, color=PALE, linewidth=1, linestyle="--", zorder=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    set_plain_log_ticks(ax, values)
    ax.set_xlabel("γ")
    set_title(ax, "path", f"{values.shape[1]} eigenvalues, {len(order)} values of γ")


def draw_reliability(
    axes: Sequence[Axes], probability: np.ndarray, share: np.ndarray, count: np.ndarray, error: float
) -> None:
    """Draw the share of similar pairs against their mean probability; on second axes, if any, the pairs of each bin."""
    diagram, *others = axes
    diagram.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    diagram.plot(probability, share, "o-", color=BLUE, markersize=4, linewidth=1.3)
    diagram.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="share of pairs that are the same")
    diagram.set_title(f"expected calibration error {error:.3f}", fontsize=10)
    for ax in others:
        ax.bar(probability, count, width=0.03, color=BLUE)
        ax.set(xlim=(0, 1), xlabel="predicted probability", ylabel="pairs")
