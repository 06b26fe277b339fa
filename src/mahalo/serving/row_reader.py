"""Rows in requests: numbers, texts, or ids of the index, checked."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from ..text import TextEncoder
from ..text.checks import MAX_CHARACTERS, is_blank
from ..web import Refusal
from .limits import MAX_ROWS
from .row_format import RowFormat

__all__ = ["RowReader", "Rows", "check_fields", "invalid", "kind_of"]

_NUMBERS = {int, float}
_HUGE = 1e308


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a request: as numbers, with the texts that these are made of, if any; or as ids of the index."""

    X: np.ndarray | None = None
    texts: tuple[str, ...] = ()
    ids: tuple[Hashable, ...] = ()

    def __len__(self) -> int:
        return len(self.ids) if self.X is None else len(self.X)


class RowReader:
    """Reader of the rows in requests; raises `Refusal` for all that is not as the model and the index take it.

    Parameters
    ----------
    form : RowFormat
    encoder : TextEncoder or None
        Encoder of texts; None if the model takes none.
    known_ids : collection
        Ids of the index.
    """

    def __init__(self, form: RowFormat, encoder: TextEncoder | None, known_ids: Collection[Hashable]) -> None:
        self.form, self._encoder, self._known = form, encoder, known_ids

    def rows(self, body: Mapping[str, object], kinds: Collection[str], beside: Collection[str] = ()) -> Rows:
        """Return the rows of an object, in the field of one of these kinds: queries, rows, texts or ids.

        Fields in `beside` may be there too; the caller reads them.
        """
        found = [kind for kind in self._allowed(kinds) if kind in body]
        if len(found) != 1:
            got = found or [name for name in body if name not in beside]
            raise invalid(
                f"the fields {', '.join(map(_shown, got)) or 'of an empty object'}", self.describe_fields(kinds)
            )
        [kind] = found
        own = ["texts", "numbers"] if kind == "texts" and self.form.n_beside else found
        check_fields(body, [*own, *beside])
        if kind == "texts":
            return self._texts(body)
        return self._ids(body[kind]) if kind == "ids" else self._numbers(body[kind], kind)

    def describe_fields(self, kinds: Collection[str]) -> str:
        """Return the fields of these kinds that the model takes, in words: "one of rows, ids" or "queries"."""
        allowed = self._allowed(kinds)
        return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]

    def _allowed(self, kinds: Collection[str]) -> list[str]:
        """Return the kinds of rows that the model takes: all, or all but texts."""
        return [kind for kind in kinds if kind != "texts" or self._encoder is not None]

    def _numbers(self, value: object, name: str) -> Rows:
        return Rows(_matrix(value, name, self.form.n_features, self.form.row))

    def _texts(self, body: Mapping[str, object]) -> Rows:
        """Return texts and their vectors, with the numbers beside them if the model takes some."""
        assert self._encoder is not None
        texts = tuple(_text(one, f"texts[{k}]") for k, one in enumerate(_list(body["texts"], "texts", "texts")))
        E = self._encoder.encode(texts)
        if not (known := E.any(axis=1)).all():
            raise invalid(f"texts[{np.argmin(known)}] of words that {self._encoder.name} does not know", "known words")
        if not self.form.n_beside:
            return Rows(E, texts)
        numbers = _matrix(body.get("numbers"), "numbers", self.form.n_beside, self.form.beside)
        if len(numbers) != len(texts):
            raise invalid(f"{len(texts)} texts, {len(numbers)} rows of numbers", "one row of numbers for each text")
        return Rows(np.hstack([E, numbers]), texts)

    def _ids(self, value: object) -> Rows:
        found = _list(value, "ids", "ids")
        kinds = {str} if self.form.has_text_ids else _NUMBERS
        for k, one in enumerate(found):
            if type(one) not in kinds or one not in self._known:
                kind = "strings" if self.form.has_text_ids else "integers"
                raise invalid(f"ids[{k}] = {_shown(one)}", f"an id of the index ({kind})")
        return Rows(ids=tuple(found))


def invalid(got: str, wanted: str) -> Refusal:
    """Return the refusal of a request whose JSON is not as described."""
    return Refusal(422, got, wanted, "GET /openapi.json describes every request")


def check_fields(body: Mapping[str, object], known: Collection[str]) -> None:
    """Raise `Refusal` for a field that is not known."""
    for name in body:
        if name not in known:
            raise invalid(f"the field {_shown(name)}", f"no field but {', '.join(known)}")


def _list(value: object, name: str, of: str) -> list:
    if not isinstance(value, list):
        raise invalid(f"{name} {kind_of(value)}", f"a list of {of}")
    if not 1 <= len(value) <= MAX_ROWS:
        raise invalid(f"{len(value):,} {of} in {name}", f"1 to {MAX_ROWS:,}")
    return value


def _matrix(value: object, name: str, width: int, row: str) -> np.ndarray:
    """Return rows of finite numbers."""
    rows = _list(value, name, "rows")
    for k, one in enumerate(rows):
        if not isinstance(one, list):
            raise invalid(f"{name}[{k}] {kind_of(one)}", row)
        if len(one) != width:
            raise invalid(f"{name}[{k}] of {len(one):,} entries", row)
        if odd := set(map(type, one)) - _NUMBERS:
            j = next(j for j, entry in enumerate(one) if type(entry) in odd)
            raise invalid(f"{name}[{k}][{j}] {kind_of(one[j])}", "a number")
    try:
        X = np.array(rows, dtype=np.float64)
    except OverflowError:  # an integer of hundreds of digits
        X = np.array([[float(entry) if abs(entry) < _HUGE else np.inf for entry in one] for one in rows])
    if not (finite := np.isfinite(X).all(axis=1)).all():
        raise invalid(f"{name}[{np.argmin(finite)}] with a number beyond double precision", "finite numbers")
    return X


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise invalid(f"{name} {kind_of(value)}", "a text")
    if is_blank(value) or len(value) > MAX_CHARACTERS:
        raise invalid(f"{name} of {len(value.strip()):,} characters", f"1 to {MAX_CHARACTERS:,}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise invalid(f"{name} with half of a surrogate pair", "valid Unicode")
    return value


def _shown(value: object) -> str:
    return repr(value)[:80]


def kind_of(value: object) -> str:
    """Return the JSON type of a value, as the end of a sentence about it."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "missing or null"}
    return f"that is {names.get(type(value), 'a number')}"
