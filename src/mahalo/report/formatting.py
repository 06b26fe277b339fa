"""Texts of numbers on the page, with no-break spaces before units and powers."""

from __future__ import annotations

from collections.abc import Iterable

_SPACE = "\N{NO-BREAK SPACE}"


def visible(value: object) -> str:
    """Return a text with every character that cannot be printed replaced by U+FFFD."""
    return "".join(c if c.isprintable() or c in (" ", _SPACE) else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def number(value: float) -> str:
    """Return three digits, with a power of ten only for very large and very small numbers."""
    if value == float("inf"):
        return "∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{_minus(mantissa.removesuffix('.0'))}{_SPACE}×{_SPACE}10{power}"
    if size >= 100:
        return _minus(f"{value:,.0f}")
    return _minus(f"{float(f'{value:.3g}'):g}")


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return _minus(f"{100 * share:.{digits}f}") + f"{_SPACE}%"


def gap_text(gap: float) -> str:
    """Return a relative gap in percent, or "rounding" where it is no more than that."""
    if not gap > 1e-15:
        return "rounding"
    return percent(gap, 0) if gap >= 0.1 else f"{number(float(f'{100 * gap:.1g}'))}{_SPACE}%"


def joined(parts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = list(parts) or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


# -- values of measures --------------------------------------------------------------------------------------------


def measure_text(measure: str, value: float, margin: float | None = None) -> str:
    """Return the value of a measure, in percent where that is customary, with ± its margin."""
    text = percent(value) if _in_percent(measure) else f"{value:.3f}"
    return text + _margin_text(measure, margin)


def change_text(measure: str, change: float, margin: float | None = None) -> str:
    """Return a signed difference of two values of a measure, with ± its margin; without the percent sign."""
    return ("+" if change >= 0 else "−") + _digits(measure, abs(change)) + _margin_text(measure, margin)


def _margin_text(measure: str, margin: float | None) -> str:
    return "" if margin is None else f" ± {_digits(measure, margin)}"


def _digits(measure: str, value: float) -> str:
    return f"{100 * value:.1f}" if _in_percent(measure) else f"{value:.3f}"


def _in_percent(measure: str) -> bool:
    return measure not in ("MAP", "AUC", "pair AUC", "retrieval")


def _minus(text: str) -> str:
    return text.replace("-", "−")
