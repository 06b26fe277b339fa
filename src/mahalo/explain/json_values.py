"""Conversion of records to values that JSON knows, and checked reading of these."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from functools import cache
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def to_json_values(value: object) -> object:
    """Return a value as JSON knows it; infinities, NaN and objects, which it does not, as they print."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_json_values(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json_values(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): to_json_values(one) for name, one in value.items()}
    return getattr(value, "__qualname__", None) or str(value)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(kind))


class Reader:
    """Entries of a mapping that came from JSON, each checked when it is read; ValueError names the wrong one."""

    def __init__(self, values: object) -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"{str(values)[:40]!r} where a mapping was expected")
        self._values = values

    def get(self, name: str) -> object:
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        return self._checked(name, str)

    def one_of(self, name: str, allowed: Collection[str]) -> str:
        value = self.get(name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} is {str(value)[:40]!r}, none of {', '.join(allowed)}"[:200])
        return value

    def truth(self, name: str) -> bool:
        value = self.get(name)
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
        return value

    def count(self, name: str) -> int | None:
        return None if self.get(name) is None else self.required_count(name)

    def required_count(self, name: str, most: float = math.inf) -> int:
        return _checked_count(name, self.get(name), most)

    def counts(self, name: str, most: float, longest: int) -> list[int]:
        """Return at most `longest` counts, none above `most`."""
        return [_checked_count(name, value, most) for value in self._entries(name, longest)]

    def number(self, name: str) -> float:
        """Return a number; infinities and NaN are stored as text."""
        return _checked_number(name, self.get(name))

    def share(self, name: str) -> float:
        """Return a number from 0 to 1."""
        value = self.finite(name)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} is {value!r}")
        return value

    def finite(self, name: str) -> float:
        value = self.number(name)
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}")
        return value

    def numbers(self, name: str) -> list[float] | None:
        values = self._checked(name, list)
        return None if values is None else [_checked_number(name, value) for value in values]

    def strings(self, name: str) -> list[str] | None:
        values = self._checked(name, list)
        return None if values is None else [str(value) for value in values]

    def mapping(self, name: str) -> dict:
        return dict(self._checked(name, Mapping) or {})  # type: ignore[type-abstract]

    def part(self, name: str) -> Reader | None:
        return None if self.get(name) is None else self.required(name)

    def required(self, name: str) -> Reader:
        return Reader(self.get(name))

    def parts(self, name: str) -> list[Reader]:
        return [Reader(one) for one in self._checked(name, list) or ()]

    def required_parts(self, name: str, longest: int) -> list[Reader]:
        return [Reader(one) for one in self._entries(name, longest)]

    def as_dataclass(self, kind: type[T]) -> T:
        """Return a dataclass of numbers, counts and truth values with these entries."""
        values = {}
        for one in dataclasses.fields(kind):  # type: ignore[arg-type]
            value = self.get(one.name)
            values[one.name] = value if isinstance(value, (bool, int)) else _checked_number(one.name, value)
        return kind(**values)

    def _entries(self, name: str, longest: int) -> list[object]:
        values = self.get(name)
        if not isinstance(values, list) or len(values) > longest:
            raise ValueError(f"{name}: a list of at most {longest} entries was expected")
        return values

    def _checked(self, name: str, kind: type[T]) -> T | None:
        value = self.get(name)
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
        return value


def _checked_count(name: str, value: object, most: float) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{name} is {str(value)[:40]!r}")
    return value


def _checked_number(name: str, value: object) -> float:
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} is {str(value)[:40]!r}")
    return float(value)
