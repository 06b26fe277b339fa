"""Class labels of any kind as codes 0, 1, …, −1 for unlabelled."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from ..validation import warn


@dataclass(frozen=True, eq=False)
class Labels:
    """Class labels: row i has class `classes[codes[i]]`, or is unlabelled if its code is −1."""

    codes: np.ndarray
    classes: np.ndarray

    def by_appearance(self) -> Labels:
        """Return the labels with classes in the order of their first appearance."""
        first = np.empty(len(self.classes) + 1, dtype=np.intp)  # the last entry is for −1
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        order = np.argsort(first[:-1])
        place = np.append(np.argsort(order), -1)
        return Labels(place[self.codes], self.classes[order])


def as_labels(y: ArrayLike) -> Labels:
    """Return checked labels with sorted classes, from numbers or strings in an array, a list or a table column.

    None, NaN, pandas' NA and NaT, masked entries, and −1 among numbers are unlabelled.
    """
    values = _one_column(y)
    labelled = ~_missing(values)
    present = _of_one_kind(np.asarray(values)[labelled])
    if len(present) and present.dtype.kind not in "iub" and not isinstance(present[0], str):
        check_classification_targets(present)
    classes, found = unique_inverse(present)
    is_class = classes != -1 if classes.dtype.kind in "iuf" else np.ones(len(classes), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[labelled] = np.where(is_class, np.cumsum(is_class) - 1, -1)[found]
    return Labels(codes, classes[is_class])


def labels_by_appearance(y: ArrayLike) -> Labels:
    """Return checked labels with classes in order of first appearance, so that samples do not depend on names."""
    if isinstance(y, np.ndarray) and _are_by_appearance(y):
        return Labels(y.copy(), np.arange(y.max(initial=-1) + 1))
    return as_labels(y).by_appearance()


def _are_by_appearance(codes: np.ndarray) -> bool:
    """Return whether labels are codes 0, 1, … in order of first appearance already, −1 for unlabelled."""
    if type(codes) is not np.ndarray or codes.dtype != np.intp or codes.ndim != 1 or not len(codes):
        return False
    seen = np.maximum.accumulate(codes)
    return bool(codes.min() >= -1 and seen[0] <= 0 and (seen[1:] - seen[:-1] <= 1).all())


def class_codes(y: ArrayLike) -> np.ndarray:
    """Return `codes_by_appearance`; raise ValueError if there are fewer than two classes."""
    labels = labels_by_appearance(y)
    n = len(labels.classes)
    if n < 2 and (labels.codes < 0).any():
        raise ValueError(
            f"y has {n} class beside unlabelled rows (−1, None or NaN): nothing to tell apart. If −1 is one of your "
            "classes, relabel it, e.g. y = (y + 1) // 2."
        )
    if n < 2:
        raise ValueError(
            f"y has {n} class; at least 2 classes are needed to tell apart. To learn from similar pairs alone, pass "
            "constraints=Constraints.from_pairs(similar=...)."
        )
    return labels.codes


def codes_of(y: ArrayLike, *, require_two_classes: bool) -> np.ndarray | None:
    """Return class codes, or None if no row is labelled; raise ValueError if two classes are required and absent."""
    return class_codes(y) if require_two_classes else none_if_unlabelled(codes_by_appearance(y))


def none_if_unlabelled(codes: np.ndarray | None) -> np.ndarray | None:
    """Return class codes, or None if no row is labelled."""
    return codes if codes is not None and (codes >= 0).any() else None


def codes_by_appearance(y: ArrayLike) -> np.ndarray:
    """Return class codes 0, 1, … in order of first appearance; −1 for unlabelled."""
    return labels_by_appearance(y).codes


def joint_codes(*ys: ArrayLike) -> list[np.ndarray]:
    """Return class codes of several label arrays, with one code per class in all of them."""
    # code −1 is the last entry
    values = [np.array([*labels.classes, None], dtype=object)[labels.codes] for labels in map(as_labels, ys)]
    codes = as_labels(np.concatenate(values)).codes
    return np.split(codes, np.cumsum([len(part) for part in values])[:-1])


def as_label_array(y: ArrayLike) -> np.ndarray:
    """Return labels as an array without changing them: missing entries among strings and masks stay."""
    reject_constraints(y)
    values = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if values.dtype.kind == "T" or (values.dtype.kind in "US" and not hasattr(y, "dtype")):
        return np.asarray(y, dtype=object)  # NumPy would turn None and numbers in a list of strings into strings
    return values


def reject_constraints(y: object) -> None:
    """Raise ValueError if constraints were passed as labels."""
    from .collection import Constraints  # that module imports this one

    if isinstance(y, Constraints):
        raise ValueError("y must be class labels; got a mahalo.Constraints. Pass it by name, as constraints=.")


def _one_column(y: ArrayLike) -> np.ndarray:
    values = as_label_array(y)
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


def _is_missing(value: object) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except TypeError:
        return True  # NA, which is neither true nor false


def _of_one_kind(values: np.ndarray) -> np.ndarray:
    """Return objects that are all numbers as numbers; raise ValueError if kinds are mixed."""
    if values.dtype.kind != "O":
        return values
    kinds = {_kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(
            f"y mixes labels of different kinds, {' and '.join(sorted(kinds))}, that have no common order. Make them "
            "all numbers or all strings."
        )
    return np.array(values.tolist()) if kinds == {"numbers"} else values


def unique_inverse(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted values that occur, and the position of each value among them."""
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * len(values):  # counting is faster than sorting
            # Differences may wrap around in a narrow type, and then back.
            offset = (values - values.dtype.type(low)).astype(f"u{values.dtype.itemsize}").astype(np.intp)
            occurs = np.bincount(offset) > 0
            return np.flatnonzero(occurs).astype(values.dtype) + values.dtype.type(low), (np.cumsum(occurs) - 1)[offset]
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)
    classes = sorted(set(values))  # much faster than sorting all values
    number = {label: k for k, label in enumerate(classes)}
    return np.array(classes, dtype=object), np.array([number[label] for label in values], dtype=np.intp)


def _kind_of(value: object) -> str:
    if isinstance(value, (Real, np.bool_)):
        return "numbers"
    return "strings" if isinstance(value, str) else type(value).__name__
