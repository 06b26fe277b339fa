"""A look at all rows of shards, a piece at a time: what is missing, moments of the columns, labels, a checksum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mahalo.constraints import Labels, as_labels
from mahalo.explain.fingerprint import checksum
from mahalo.linalg import ClassMoments

from .columns import Encoding, Missing, not_finite_in, nulls_in, numbers_of, refuse_missing, values_in
from .named import Classes, no_measurements, numbers_in
from .shards import Piece, Shards
from .vectors import check_vectors

__all__ = ["CodedLabels", "Look", "Looking", "union_of_values", "values_of_piece"]

_MOST_CLASSES = 1_000_000


@dataclass(frozen=True)
class Look:
    """What was found in some rows; `moments`, of all columns as one class, are None where values are missing."""

    nulls: dict[str, Missing]
    not_finite: dict[str, Missing]
    moments: ClassMoments | None
    largest: np.ndarray
    labels: Counter
    checksum: int

    @staticmethod
    def merged(looks: Sequence[Look]) -> Look:
        """Of all their rows, which are in order."""
        moments = [look.moments for look in looks]
        labels = sum((look.labels for look in looks), Counter())
        if len(labels) > _MOST_CLASSES:
            raise ValueError(
                f"there are more than {_MOST_CLASSES:,} different labels, far too many to learn from; is this the "
                "column of classes?"
            )
        return Look(
            _all_missing([look.nulls for look in looks]),
            _all_missing([look.not_finite for look in looks]),
            None if None in moments else reduce(ClassMoments.merge, moments),  # type: ignore[arg-type]
            np.max([look.largest for look in looks], axis=0),
            labels,
            sum(look.checksum for look in looks) % 2**64,
        )

    def refuse_missing(self, shards: Shards) -> None:
        refuse_missing(shards, self.nulls)
        refuse_missing(shards, self.not_finite)


def _all_missing(parts: Sequence[dict[str, Missing]]) -> dict[str, Missing]:
    found: dict[str, Missing] = {}
    for part in parts:
        for name, missing in part.items():
            before = found.get(name, Missing(0, missing.row))
            found[name] = Missing(before.count + missing.count, before.row)
    return found


@dataclass(frozen=True)
class Looking:
    """How to look at a piece: its columns as `encoding` says, its labels if there are any."""

    shards: Shards
    encoding: Encoding
    label: str | None

    def __call__(self, piece: Piece) -> Look:
        beside = [] if self.label is None else [self.label]
        table = self.shards.read(piece, [*self.encoding.columns, *beside])
        labels = Counter() if self.label is None else _counted(table.frame.column(self.label))
        nulls = _from_row(nulls_in(table, self.encoding), piece.first)
        if nulls:
            return Look(nulls, {}, None, np.zeros(len(self.encoding.names)), labels, 0)
        check_vectors(
            table, [name for name in self.encoding.columns if name not in self.encoding.one_hot], self.encoding.vectors
        )
        X = numbers_of(table, self.encoding)
        not_finite = _from_row(not_finite_in(X, self.encoding), piece.first)
        one_class = np.zeros(len(X), dtype=np.intp)
        return Look(
            nulls,
            not_finite,
            None if not_finite else ClassMoments.of(X, one_class, 1, "variances"),
            np.maximum(X.max(axis=0), -X.min(axis=0)),
            labels,
            checksum(X, piece.first),
        )


def _from_row(missing: dict[str, Missing], first: int) -> dict[str, Missing]:
    return {name: Missing(found.count, found.row + first) for name, found in missing.items()}


def values_of_piece(shards: Shards, names: Sequence[str], piece: Piece) -> dict[str, set[str]]:
    return values_in(shards.read(piece, names), names)


def union_of_values(parts: Sequence[dict[str, set[str]]]) -> dict[str, set[str]]:
    return {name: set().union(*(part[name] for part in parts)) for name in parts[0]}


# -- labels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodedLabels:
    """A column of labels as numbers 0, 1, … of classes in sorted order, −1 for none; the same in every piece."""

    classes: Classes
    codes: dict[Any, int]

    @classmethod
    def of(cls, counts: Counter, called: str) -> CodedLabels:
        """From how often each label occurs in a column; text that is numbers is taken for them where all of it is."""
        values = np.empty(len(counts), dtype=object)
        values[:] = list(counts)
        found = _labels(no_measurements(numbers_in(values), called))
        n_rows = np.array(list(counts.values()), dtype=np.int64)
        sizes = np.zeros(len(found.classes) + 1, dtype=np.int64)
        np.add.at(sizes, found.codes, n_rows)  # −1 is the last
        classes = Classes(found.classes, sizes[:-1], int(sizes[-1]))
        return cls(classes, dict(zip(counts, found.codes.tolist(), strict=True)))

    def of_column(self, column: Any) -> np.ndarray:
        """The number of each label."""
        encoded = column.combine_chunks().dictionary_encode()
        # A dictionary that came with the column may have values that no row has.
        codes = [self.codes.get(_as_key(value), -1) for value in encoded.dictionary.to_pylist()]
        place = encoded.indices.fill_null(len(codes)).to_numpy()
        return np.array([*codes, -1], dtype=np.int64)[place]


def _labels(values: np.ndarray) -> Labels:
    """Each twice, so that nobody wonders at as many classes as there are values."""
    found = as_labels(np.repeat(values, 2))
    return Labels(found.codes[::2], found.classes)


def _counted(column: Any) -> Counter:
    found = column.value_counts()
    counts: Counter = Counter()
    for value, n in zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True):
        counts[_as_key(value)] += n
    return counts


def _as_key(value: Any) -> Any:
    return None if value != value else value  # NaN, which is never the same twice
