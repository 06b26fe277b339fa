"""Filling of missing numbers, fitted to training rows and stored with a model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from .json_values import Reader

METHODS = ("mean", "median", "knn")
_MOST_ROWS, _MOST_NUMBERS = 1_000, 100_000  # of training rows that are stored for "knn"


@dataclass(frozen=True)
class Imputation:
    """Numbers that take the place of missing ones, by scikit-learn's imputers.

    "mean" and "median" fill with that of the column; "knn" with the mean of the five nearest of the stored rows that
    have the number, in columns of deviation 1.

    Attributes
    ----------
    method : {"mean", "median", "knn"}
    values : tuple of float
        Mean (for "knn" too) or median of each column.
    rows : tuple of tuple of float or None
        For "knn" a sample of the training rows, None where a number is missing; else empty.
    """

    method: str
    values: tuple[float, ...]
    rows: tuple[tuple[float | None, ...], ...] = ()

    @classmethod
    def fit(cls, X: np.ndarray, method: str, names: Sequence[str] = ()) -> Self:
        """Fit to rows in which missing numbers are NaN; raise ValueError if a column has no numbers.

        `names` are those of the columns, for messages.
        """
        from sklearn.impute import SimpleImputer

        check_method(method)
        check_filled(~np.isnan(X).all(axis=0), names)
        statistics = SimpleImputer(strategy="median" if method == "median" else "mean").fit(X).statistics_
        values = tuple(statistics.tolist())
        return cls(method, values, _stored_rows(X, statistics) if method == "knn" else ())

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Return rows with numbers in the place of NaN, of the dtype of X; X itself if it has none."""
        if X.shape[1] != len(self.values):
            raise ValueError(f"rows have {X.shape[1]} columns, and missing numbers are known of {len(self.values)}.")
        missing = np.isnan(X)
        if not missing.any():
            return X
        if self.method != "knn":
            return np.where(missing, np.asarray(self.values, dtype=X.dtype), X)
        from sklearn.impute import KNNImputer

        scale, filled, gaps = self._scale, X.copy(), missing.any(axis=1)
        near = KNNImputer().fit(self._donors / scale).transform(X[gaps] / scale) * scale
        filled[missing] = near[missing[gaps]]
        return filled

    @cached_property
    def _donors(self) -> np.ndarray:
        return np.array(self.rows, dtype=np.float64)  # None becomes NaN

    @cached_property
    def _scale(self) -> np.ndarray:
        scale = np.nanstd(self._donors, axis=0)
        return np.where(scale > 0, scale, 1.0)

    @classmethod
    def read(cls, about: Reader) -> Imputation | None:
        """Return the entry "impute" of `Metric.about`, checked; None if there is none."""
        stored = about.part("impute")
        if stored is None:
            return None
        method, values = stored.one_of("method", METHODS), tuple(stored.numbers("values") or ())
        found = stored.get("rows") or []
        if not isinstance(found, list) or len(found) > _MOST_ROWS or bool(found) != (method == "knn"):
            raise ValueError(f"the rows that {method!r} fills missing numbers from are not whole")
        rows = tuple(_read_row(row, len(values)) for row in found)
        made = cls(method, values, rows)
        if not np.isfinite(values).all() or (rows and np.isnan(made._donors).all(axis=0).any()):
            raise ValueError("the numbers that fill missing ones are not whole")
        return made


def check_method(method: str) -> None:
    """Raise ValueError unless there is a method of this name."""
    if method not in METHODS:
        raise ValueError(f"--impute {method!r} does not exist; wanted {', '.join(METHODS[:-1])} or {METHODS[-1]}.")


def check_filled(has_numbers: np.ndarray, names: Sequence[str] = ()) -> None:
    """Raise ValueError if columns have no numbers to fill their missing ones from."""
    empty = np.flatnonzero(~has_numbers)
    if len(empty):
        listed = ",".join(str(names[k]) for k in empty[:10]) if len(names) else ""
        what = listed or f"column {int(empty[0])} (the first is 0)"
        remedy = f"--drop {shlex.quote(listed)}" if listed else "remove it"
        raise ValueError(f"no row has a number in {what}, so that nothing can be filled in; leave it out: {remedy}.")


def _stored_rows(X: np.ndarray, means: np.ndarray) -> tuple[tuple[float | None, ...], ...]:
    """Return a fixed sample of rows, the mean in columns of which it has no number."""
    n = max(1, min(_MOST_ROWS, _MOST_NUMBERS // X.shape[1]))
    rows = X if len(X) <= n else X[np.sort(np.random.default_rng(0).choice(len(X), n, replace=False))]
    rows = np.where(np.isnan(rows).all(axis=0), means, rows)
    return tuple(tuple(None if np.isnan(value) else value for value in row) for row in rows.tolist())


def _read_row(row: object, n_columns: int) -> tuple[float | None, ...]:
    if not isinstance(row, list) or len(row) != n_columns:
        raise ValueError("a row that missing numbers are filled from has not as many numbers as there are columns")
    numbers = Reader({"row": [value for value in row if value is not None]}).numbers("row") or []
    found = iter(numbers)
    return tuple(None if value is None else next(found) for value in row)
