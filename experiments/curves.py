"""The figure of an experiment: curves with interval bands, or dots with interval bars, one panel for each measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from mahalo.drawing import require_matplotlib

from .outcome import Measurement, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

# Told apart by common kinds of colour blindness; shapes differ too.
_COLOURS = (
    "#0077BB",
    "#CC3311",
    "#117733",
    "#EE7733",
    "#AA4499",
    "#332288",
    "#33A0BB",
    "#887700",
    "#555555",
    "#DD6699",
    "#000000",
    "#88BB44",
)
_SHAPES = "osD^vPX<>p"
_INK, _PALE, _GRID = "#222222", "#777777", "#E4E4E4"
_MOST_ACROSS = 3
_LETTERS_AN_INCH = 8.5  # of a title


def draw(outcome: Outcome) -> Figure:
    """A panel for each curve; data sets without curves share one panel for each measure."""
    require_matplotlib()
    from matplotlib.figure import Figure

    panels = _panels(outcome.measurements)
    styles = _styles(outcome.measurements)
    down = -(-len(panels) // _MOST_ACROSS)
    across = -(-len(panels) // down)
    widths = [max(_width(part) for _, part in panels[k::across]) for k in range(across)]
    width = max(6.0, sum(widths))
    height = 0.9 + 0.24 * -(-len(styles) // _legend_columns(styles, width)) + 3.7 * down
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, gridspec_kw={"width_ratios": widths}).ravel()
    for ax, (title, part) in zip(axes, panels, strict=False):
        (_draw_curves if _is_curve(part) else _draw_dots)(ax, part, styles, outcome.x_label or "")
        _fit_height(ax, part)
        ax.set_title(title, loc="left", fontsize=11, color=_INK)
        _plain(ax)
    for ax in axes[len(panels) :]:
        ax.remove()
    figure.suptitle(
        fill(outcome.title, int(_LETTERS_AN_INCH * width)),
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
        color=_INK,
    )
    _legend(figure, styles, published=any(m.published is not None for m in outcome.measurements))
    return figure


def _panels(measurements: Sequence[Measurement]) -> list[tuple[str, list[Measurement]]]:
    curved = {m.dataset for m in measurements if m.x is not None}
    panels: dict[str, list[Measurement]] = {}
    for m in measurements:
        panels.setdefault(f"{m.dataset}: {m.measure}" if m.dataset in curved else m.measure, []).append(m)
    return list(panels.items())


def _is_curve(part: Sequence[Measurement]) -> bool:
    return any(m.x is not None for m in part)


def _width(part: Sequence[Measurement]) -> float:
    n_groups = 0 if _is_curve(part) else len({m.dataset for m in part})
    return min(12.0, max(4.6, 0.95 * n_groups))


def _styles(measurements: Sequence[Measurement]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each method."""
    methods = dict.fromkeys(m.method for m in measurements)
    return {
        method: (_COLOURS[k % len(_COLOURS)], _SHAPES[(k + k // len(_COLOURS)) % len(_SHAPES)])
        for k, method in enumerate(methods)
    }


def _in_ratios(part: Sequence[Measurement]) -> bool:
    """Whether the measure is one to compare by factors, on a logarithmic scale."""
    return part[0].measure.startswith(("seconds", "times")) and min(m.value for m in part) > 0


def _draw_curves(ax: Axes, part: Sequence[Measurement], styles, x_label: str) -> None:
    bands = not _in_ratios(part)  # symmetric intervals would reach below zero
    xs = sorted({m.x for m in part if m.x is not None})
    for method, (colour, shape) in styles.items():
        constant = [m for m in part if m.method == method and m.x is None]
        curve = sorted((m for m in part if m.method == method and m.x is not None), key=lambda m: m.x or 0.0)
        for m in constant:
            ax.axhline(m.value, color=colour, lw=1.6, ls=(0, (4, 2)))
            around = bands * (m.half_width or 0.0)
            ax.axhspan(m.value - around, m.value + around, color=colour, alpha=0.12, lw=0)
        if not curve:
            continue
        x, value = np.array([m.x for m in curve]), np.array([m.value for m in curve])
        half = np.array([np.nan if m.half_width is None else m.half_width for m in curve])  # no band where unknown
        ax.plot(x, value, color=colour, marker=shape, ms=4.5, lw=1.6)
        if bands:
            ax.fill_between(x, value - half, value + half, color=colour, alpha=0.14, lw=0)
        stated = [(m.x, m.published) for m in curve if m.published is not None]
        if stated:
            ax.plot(*zip(*stated, strict=True), ls="", marker=shape, ms=8, mfc="none", mec=colour)
    if len(xs) > 2 and xs[0] > 0 and xs[-1] / xs[0] > 8:
        ax.set_xscale("log")
        ax.set_xticks(xs, [f"{x:g}" for x in xs])
        ax.minorticks_off()
    ax.set_xlabel(x_label, color=_PALE)


def _draw_dots(ax: Axes, part: Sequence[Measurement], styles, _: str) -> None:
    datasets = list(dict.fromkeys(m.dataset for m in part))
    methods = [method for method in styles if any(m.method == method for m in part)]
    for m in part:
        colour, shape = styles[m.method]
        at = datasets.index(m.dataset) + 0.7 * ((methods.index(m.method) + 0.5) / len(methods) - 0.5)
        ax.errorbar(at, m.value, yerr=m.half_width, color=colour, marker=shape, ms=5, lw=1.4, capsize=0)
        if m.published is not None:
            ax.plot(at, m.published, marker=shape, ms=9, mfc="none", mec=colour, mew=1.2)
    for k in range(len(datasets) - 1):
        ax.axvline(k + 0.5, color=_GRID, lw=0.8)
    long_names = max(map(len, datasets)) > 9 and len(datasets) > 3
    turned: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if long_names else {}
    ax.set_xticks(range(len(datasets)), datasets, **turned)
    ax.set_xlim(-0.5, len(datasets) - 0.5)


def _fit_height(ax: Axes, part: Sequence[Measurement]) -> None:
    """Room for all values; an interval much wider than their range leaves the panel instead of flattening it."""
    values = np.array([v for m in part for v in (m.value, m.published) if v is not None])
    if _in_ratios(part):
        _log_scale(ax)
        ax.set_ylim(values.min() / 1.6, values.max() * 1.6)
        return
    room = 0.5 * np.ptp(values) or 0.1 * abs(values[0]) or 1.0
    half = np.array([min(m.half_width or 0.0, room) for m in part])
    value = np.array([m.value for m in part])
    low, high = min(values.min(), (value - half).min()), max(values.max(), (value + half).max())
    if values.min() >= 0 and values.max() <= 1:  # shares stay shares, whatever their intervals
        low, high = max(low, 0.0), min(high, 1.0)
    ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))


def _log_scale(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, styles, published: bool) -> None:
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], color=colour, marker=shape, ms=5, lw=1.6, label=method)
        for method, (colour, shape) in styles.items()
    ]
    if published:
        entries.append(Line2D([], [], ls="", marker="o", ms=9, mfc="none", mec=_INK, label="published (open)"))
    columns = _legend_columns([str(entry.get_label()) for entry in entries], figure.get_figwidth())
    figure.legend(handles=entries, loc="outside lower left", ncols=columns, frameon=False, fontsize=9)


def _legend_columns(labels: Iterable[str], width: float) -> int:
    """As many as fit into so many inches."""
    return max(1, int(width / (0.62 + 0.075 * max(map(len, labels)))))


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_PALE)
    ax.tick_params(colors=_INK, labelsize=9)
    ax.grid(axis="y", color=_GRID, lw=0.8)
    ax.set_axisbelow(True)
