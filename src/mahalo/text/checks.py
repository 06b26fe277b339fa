"""Checks of texts before they are encoded."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

MAX_CHARACTERS = 100_000  # of one text; the mean over more words than these says nothing
_MISSING = ("None", "nan", "<NA>", "NaT")  # missing values of Python, NumPy and pandas, as they print
_SHOWN = 40  # characters of a wrong value in a message


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list of str, those longer than `MAX_CHARACTERS` cut with a warning.

    Raise ValueError for values that are not text.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"expected a list of texts; got a single {type(texts).__name__}. Pass [text].")
    found = list(texts)
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise ValueError(f"text {row} {_describe(text)}; expected a string. Leave such rows out, or convert them.")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"text {row} is not valid Unicode: {text[:_SHOWN]!r}. Read its file again with the right encoding."
            ) from None
    return _cut([str(text) for text in found])


def is_blank(text: str) -> bool:
    """Return whether a text is empty or white space alone."""
    return not text.strip()


def _describe(value: object) -> str:
    shown = str(value)
    if shown in _MISSING:
        return f"is missing ({shown})"
    return f"is {shown[:_SHOWN]!r} of type {type(value).__name__}"


def warn_of_numbers(texts: list[str]) -> None:
    """Warn if all of several texts are only digits."""
    filled = [text for text in texts if not is_blank(text)]
    if len(filled) > 1 and all("".join(text.split()).isdigit() for text in filled):
        warnings.warn(
            f"all {len(filled)} texts are only digits. Encoders know words, not quantities: pass numbers as features.",
            UserWarning,
            stacklevel=3,
        )


def _cut(texts: list[str]) -> list[str]:
    long = [row for row, text in enumerate(texts) if len(text) > MAX_CHARACTERS]
    if not long:
        return texts
    warnings.warn(
        f"{len(long)} of {len(texts)} texts are longer than {MAX_CHARACTERS:,} characters, the first is text {long[0]} "
        f"with {len(texts[long[0]]):,}; only their beginning is encoded. Split long documents into paragraphs.",
        UserWarning,
        stacklevel=4,
    )
    return [text[:MAX_CHARACTERS] for text in texts]
