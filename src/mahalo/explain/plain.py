"""Conversion of records to values that JSON knows, and checked reading of these."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

__all__ = ["Reader", "to_plain"]

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Return a value as JSON knows it; infinities, NaN and objects, which it does not, as they print."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_plain(one) for one in value]
    return getattr(value, "__qualname__", None) or str(value)


class Reader:
    """Entries of a mapping that came from JSON, each checked when it is read; ValueError names the wrong one."""

    def __init__(self, values: object) -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"{str(values)[:40]!r} where a mapping was expected")
        self._values = values

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        return self._checked(name, str)

    def count(self, name: str) -> int | None:
        value = self._checked(name, int)
        if value is not None and (isinstance(value, bool) or value < 0):
            raise ValueError(f"{name} is {value!r}")
        return value

    def number(self, name: str) -> float:
        """Return a number; infinities and NaN are stored as text."""
        return self._number(name, self.get(name))

    def numbers(self, name: str) -> list[float] | None:
        values = self._checked(name, list)
        return None if values is None else [self._number(name, value) for value in values]

    def strings(self, name: str) -> list[str] | None:
        values = self._checked(name, list)
        return None if values is None else [str(value) for value in values]

    def mapping(self, name: str) -> dict[str, Any]:
        return dict(self._checked(name, Mapping) or {})

    def part(self, name: str) -> Reader | None:
        return None if self.get(name) is None else Reader(self.get(name))

    def required(self, name: str) -> Reader:
        return Reader(self.get(name))

    def parts(self, name: str) -> list[Reader]:
        return [Reader(one) for one in self._checked(name, list) or ()]

    def as_dataclass(self, kind: type[T]) -> T:
        """Return a dataclass of numbers, counts and truth values with these entries."""
        values = {}
        for one in dataclasses.fields(kind):  # type: ignore[arg-type]
            value = self.get(one.name)
            values[one.name] = value if isinstance(value, (bool, int)) else self._number(one.name, value)
        return kind(**values)

    def _checked(self, name: str, kind: type) -> Any:
        value = self.get(name)
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
        return value

    @staticmethod
    def _number(name: str, value: object) -> float:
        if isinstance(value, str) and value in ("inf", "-inf", "nan"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
        return float(value)
