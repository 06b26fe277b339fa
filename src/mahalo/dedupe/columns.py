"""Columns of a table as blocks of numbers: vectors of texts, and standardised numbers."""

from __future__ import annotations

import html
import unicodedata
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..progress import SILENT, Progress
from ..text import TextEncoder

Columns = Mapping[str, np.ndarray]  # by name: one row of numbers for each row of the table


def fold_text(text: str) -> str:
    """Return a text in lower case, with entities of HTML as characters and single spaces."""
    return " ".join(unicodedata.normalize("NFKC", html.unescape(text)).lower().split())


def text_columns(
    texts: Mapping[str, Sequence[str]], encoder: TextEncoder, progress: Progress = SILENT
) -> dict[str, np.ndarray]:
    """Return the vectors of columns of texts, folded first.

    Empty texts are rows of zeros: they are equal to each other, and apart from all others.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*their vectors are zero")
        return {name: encoder.encode([fold_text(text) for text in column], progress) for name, column in texts.items()}


def number_columns(
    table: Mapping[str, ArrayLike], against: Mapping[str, ArrayLike] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return columns of numbers of one or two tables, each with deviation 1 over both, as blocks of one column."""
    blocks: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = ({}, {})
    for name, values in table.items():
        sides = [
            np.asarray(one, dtype=np.float64).ravel() for one in (values, *([] if against is None else [against[name]]))
        ]
        both = np.concatenate(sides)
        if not np.isfinite(both).all():
            raise ValueError(f"column {name!r} has missing or infinite values; fill them in, or leave the column out.")
        deviation = float(both.std()) or 1.0
        for block, side in zip(blocks, sides, strict=False):
            block[name] = ((side - both.mean()) / deviation)[:, None]
    return blocks


def check_tables(
    columns: Columns | ArrayLike, against: Columns | ArrayLike | None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray] | None]:
    """Return the blocks of a table, and of the one it is compared with, which must have the same columns."""
    blocks = _check_columns(columns)
    if against is None:
        n_rows = len(next(iter(blocks.values())))
        if n_rows < 2:
            raise ValueError(f"at least 2 rows are needed to find duplicates in a table; got {n_rows}.")
        return blocks, None
    others = _check_columns(against)
    if list(others) != list(blocks):
        raise ValueError(f"both tables must have the same columns; got {', '.join(blocks)} and {', '.join(others)}.")
    for name, block in blocks.items():
        if block.shape[1] != others[name].shape[1]:
            raise ValueError(
                f"column {name!r} must have vectors of one length in both tables; got {block.shape[1]} and "
                f"{others[name].shape[1]}."
            )
    return blocks, others


def _check_columns(columns: Columns | ArrayLike) -> dict[str, np.ndarray]:
    """Return blocks of two dimensions with one number of rows; an array has one block for each of its columns."""
    if not isinstance(columns, Mapping):
        X = np.asarray(columns, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"expected columns by name, or an array of rows and columns; got {X.ndim} dimensions.")
        columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
    blocks = {}
    for name, values in columns.items():
        block = np.asarray(values, dtype=np.float32 if np.asarray(values).dtype == np.float32 else np.float64)
        block = block[:, None] if block.ndim == 1 else block
        if block.ndim != 2 or not np.isfinite(block).all():
            raise ValueError(f"column {name!r} must hold one finite number or vector for each row.")
        blocks[str(name)] = block
    sizes = {len(block) for block in blocks.values()}
    if len(sizes) != 1:
        raise ValueError(
            "no columns to compare." if not sizes else f"columns have different numbers of rows: {sorted(sizes)}."
        )
    return blocks


def scaled_rows(columns: Columns, weights: Mapping[str, float]) -> np.ndarray:
    """Return rows whose squared distance is the weighted sum of the squared distances of the columns."""
    parts = [block.astype(np.float64) * np.sqrt(weights[name]) for name, block in columns.items()]
    return np.hstack(parts)
