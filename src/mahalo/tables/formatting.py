"""Names of columns, files and errors in messages, and numbers that files write as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

_SHOWN = 3
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

T = TypeVar("T")


def list_some(names: Sequence[T], quote: Callable[[T], str] = repr) -> str:
    """Return the first three names and the number of the others."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(quote, names[:_SHOWN])) + more


def one_line(error: Exception) -> str:
    """Return the message of an error on one line, without its full stop."""
    return " ".join(str(error).split()).removesuffix(".")


def is_number(text: str) -> bool:
    """Return whether a text is a number as files write it: without the underscores of Python, as in 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def escape_formula(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would run it as a formula; numbers stay."""
    is_formula = text.lstrip().startswith(_FORMULA)
    is_finite = is_formula and text == text.strip() and is_number(text) and np.isfinite(float(text))
    return f"'{text}" if is_formula and not is_finite else text


def float_array(values: Sequence[object]) -> np.ndarray | None:
    """Return numbers, or texts that are numbers, as an array; None if one of them is neither."""
    if any(isinstance(value, str) and not is_number(value) for value in values):
        return None
    try:
        return np.array([float(value) for value in values])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def shorten(text: str, most: int) -> str:
    """Return a text on one line without control characters, cut with an ellipsis to `most` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
