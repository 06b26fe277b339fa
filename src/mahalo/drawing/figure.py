"""Figures of matplotlib, without pyplot: nothing global changes, and any back end can show or save them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..persistence import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The "muted" scheme of Paul Tol: distinct for all common kinds of colour blindness.
CLASS_COLOURS = (
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
BLUE, ORANGE, INK, PALE, FAINT = "#0077BB", "#CC5500", "#222222", "#777777", "#D0D0D0"


class TextStyle(TypedDict):
    """Style of a text, as keyword arguments of matplotlib."""

    fontsize: float
    color: str


SMALL = TextStyle(fontsize=8.5, color=PALE)


def require_matplotlib() -> None:
    """Raise ImportError, with the command that installs it, if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mahalo[plots]'") from None


def new_figure(
    n_rows: int, n_cols: int, *, width: float, height: float, row_heights: Sequence[float] | None = None
) -> tuple[Figure, np.ndarray]:
    """Return a figure of this size in inches and its axes, an array of shape (n_rows, n_cols)."""
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    axes = figure.subplots(n_rows, n_cols, squeeze=False, height_ratios=row_heights)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: str | PathLike, dpi: int = 120) -> Path:
    """Write a figure in the format of the file name; a PNG gets a palette of 128 colours, which halves the file."""
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


# -- parts of panels -----------------------------------------------------------------------------------------------


def set_title(ax: Axes, name: str, what: str, pad: float = 7.0) -> None:
    """Set the title "name: what" at the left."""
    ax.set_title(f"{name}: {what}", loc="left", fontsize=11, color=INK, pad=pad)


def write_key(ax: Axes, *entries: tuple[str, str]) -> None:
    """Write (text, colour) entries one below the other in the upper right corner."""
    for k, (text, colour) in enumerate(entries):
        ax.annotate(
            text,
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(-4, -6 - 14 * k),
            textcoords="offset points",
            ha="right",
            va="top",
            color=colour,
            fontsize=9.5,
        )


def write_at_level(ax: Axes, level: float, text: str, below: bool = False) -> None:
    """Write a text beside a horizontal line, at the left."""
    ax.annotate(
        text,
        (0.0, level),
        xycoords=("axes fraction", "data"),
        xytext=(4, -3 if below else 3),
        textcoords="offset points",
        va="top" if below else "bottom",
        **SMALL,
    )


def set_plain_log_ticks(ax: Axes, values: np.ndarray) -> None:
    """Label a logarithmic axis 0.1, 1, 10; with 0.2, 0.5, 2, 5 between where it spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    few = values.max(initial=1.0) < 100 * max(values.min(initial=1.0), 1e-300)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def short_number(value: float) -> str:
    """Return two digits, without an exponent up to 99,999."""
    short = f"{value:.2g}"
    return f"{float(short):g}" if value < 1e5 else short


def plural(n: int, noun: str) -> str:
    """Return "1 step", "2 steps"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
