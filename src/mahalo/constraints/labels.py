"""Class labels of any kind as numbers, −1 where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from ..validation import warn

__all__ = [
    "Labels",
    "as_given",
    "as_labels",
    "class_codes",
    "codes_by_appearance",
    "codes_of",
    "codes_together",
    "labels_by_appearance",
    "refuse_constraints",
    "where_any",
]


@dataclass(frozen=True, eq=False)
class Labels:
    """Row i is of class `classes[codes[i]]`; where the code is −1 it is unlabelled."""

    codes: np.ndarray
    classes: np.ndarray

    def by_appearance(self) -> Labels:
        """Classes in the order in which they first appear, whatever their names."""
        first = np.empty(len(self.classes) + 1, dtype=np.intp)  # the last is for −1
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        order = np.argsort(first[:-1])
        place = np.append(np.argsort(order), -1)
        return Labels(place[self.codes], self.classes[order])


def as_labels(y: Any) -> Labels:
    """One label for each row, numbers or strings in an array, a list or a column of a table, checked; classes sorted.

    None, NaN, pandas' NA and NaT and what is masked are no label; nor is −1 among numbers.
    """
    values = _one_column(y)
    given = ~_missing(values)
    present = _of_one_kind(np.asarray(values)[given])
    if len(present) and present.dtype.kind not in "iub" and not isinstance(present[0], str):
        check_classification_targets(present)
    classes, found = _unique(present)
    is_class = classes != -1 if classes.dtype.kind in "iuf" else np.ones(len(classes), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[given] = np.where(is_class, np.cumsum(is_class) - 1, -1)[found]
    return Labels(codes, classes[is_class])


def labels_by_appearance(y: Any) -> Labels:
    """The same with classes in the order in which they first appear: their names have no say in what is drawn."""
    return as_labels(y).by_appearance()


def class_codes(y: Any) -> np.ndarray:
    """Labels as 0, 1, ... by appearance; −1 for unlabelled. Raises if there is nothing to tell apart."""
    labels = labels_by_appearance(y)
    n = len(labels.classes)
    if n < 2 and (labels.codes < 0).any():
        raise ValueError(
            f"y has {n} class beside rows that are unlabelled (−1, None or NaN): nothing to tell apart. If −1 is a "
            "class of yours, relabel it, e.g. y = (y + 1) // 2."
        )
    if n < 2:
        raise ValueError(
            f"y has {n} class; at least 2 classes are needed to tell apart. To learn from similar pairs alone, pass "
            "constraints=Constraints.from_pairs(similar=...)."
        )
    return labels.codes


def codes_of(y: Any, *, alone: bool) -> np.ndarray | None:
    """Class codes, of two classes at least where labels are all that is known; beside constraints none will do too."""
    return class_codes(y) if alone else where_any(codes_by_appearance(y))


def where_any(codes: np.ndarray | None) -> np.ndarray | None:
    """Codes of classes; None where no row has one."""
    return codes if codes is not None and (codes >= 0).any() else None


def codes_by_appearance(y: Any) -> np.ndarray:
    """Labels as 0, 1, ... in the order in which classes first appear; −1 for unlabelled."""
    return labels_by_appearance(y).codes


def codes_together(*ys: Any) -> list[np.ndarray]:
    """Codes of several sets of labels, over the classes of all of them."""
    # code −1 is the last entry
    values = [np.array([*labels.classes, None], dtype=object)[labels.codes] for labels in map(as_labels, ys)]
    codes = as_labels(np.concatenate(values)).codes
    return np.split(codes, np.cumsum([len(part) for part in values])[:-1])


def as_given(y: Any) -> np.ndarray:
    """Labels in an array as they were given: what is missing among strings stays missing, what is masked masked."""
    refuse_constraints(y)
    values = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if values.dtype.kind == "T" or (values.dtype.kind in "US" and not hasattr(y, "dtype")):
        return np.asarray(y, dtype=object)  # in a list beside strings, NumPy would turn all that is not into them
    return values


def refuse_constraints(y: Any) -> None:
    """Raise where constraints stand in the place of labels."""
    from .collection import Constraints  # which can be made from labels

    if isinstance(y, Constraints):
        raise ValueError("y must be class labels; got a mahalo.Constraints. Pass it by name, as constraints=.")


def _one_column(y: Any) -> np.ndarray:
    values = as_given(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected. Pass y.ravel().", DataConversionWarning)
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y must be one label for each row, a 1-D array; got shape {values.shape}.")
    return values


def _missing(values: np.ndarray) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values) | _missing(values.data)
    kind = values.dtype.kind
    if kind == "O":
        return np.array([_is_missing(value) for value in values], dtype=bool)
    if kind in "fcmM":
        return np.isnan(values)
    return np.zeros(len(values), dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except TypeError:
        return True  # NA, which is neither true nor false


def _of_one_kind(values: np.ndarray) -> np.ndarray:
    """Numbers among objects as numbers; an error where there are others beside them."""
    if values.dtype.kind != "O":
        return values
    kinds = {_kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(
            f"y mixes labels of different kinds, {' and '.join(sorted(kinds))}, that have no common order. Make them "
            "all numbers or all strings."
        )
    return np.array(values.tolist()) if kinds == {"numbers"} else values


def _unique(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes in sorted order and the class of each value."""
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)
    classes = sorted(set(values))  # far quicker than to sort all of them
    number = {label: k for k, label in enumerate(classes)}
    return np.array(classes, dtype=object), np.array([number[label] for label in values], dtype=np.intp)


def _kind_of(value: Any) -> str:
    if isinstance(value, (Real, np.bool_)):
        return "numbers"
    return "strings" if isinstance(value, str) else type(value).__name__
