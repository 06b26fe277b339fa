"""Statistics of all rows of Parquet shards, found piece by piece: missing values, moments, labels, a checksum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ..constraints import as_labels
from ..explain.fingerprint import checksum
from ..linalg import ClassMoments
from .columns import Encoding, Missing, find_nonfinite, find_nulls, raise_if_missing, to_numbers
from .labels_and_ids import Classes, parse_numbers, refuse_measurements
from .parquet_shards import ParquetShards, Piece
from .vectors import check_vectors

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnScan", "ColumnStats", "LabelCodes"]

_MOST_CLASSES = 1_000_000


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of some rows; `moments`, of all columns as one class, are None if values are missing."""

    nulls: dict[str, Missing]
    nonfinite: dict[str, Missing]
    moments: ClassMoments | None
    largest: np.ndarray
    labels: Counter[Hashable]
    checksum: int

    @staticmethod
    def merge(parts: Sequence[ColumnStats]) -> ColumnStats:
        """Return the statistics of all rows of parts in their order."""
        moments = [part.moments for part in parts]
        labels: Counter[Hashable] = sum((part.labels for part in parts), Counter())
        if len(labels) > _MOST_CLASSES:
            raise ValueError(
                f"there are more than {_MOST_CLASSES:,} different labels, far too many to learn from; is this the "
                "column of classes?"
            )
        return ColumnStats(
            _merge_missing([part.nulls for part in parts]),
            _merge_missing([part.nonfinite for part in parts]),
            None if None in moments else reduce(ClassMoments.merge, moments),  # type: ignore[arg-type]
            np.max([part.largest for part in parts], axis=0),
            labels,
            sum(part.checksum for part in parts) % 2**64,
        )

    def raise_if_missing(self, shards: ParquetShards) -> None:
        """Raise ValueError if values are missing or not finite."""
        raise_if_missing(shards, self.nulls)
        raise_if_missing(shards, self.nonfinite)

    @property
    def mean(self) -> np.ndarray:
        """Mean of each column."""
        assert self.moments is not None
        return self.moments.means[0]

    @property
    def variance(self) -> np.ndarray:
        """Variance of each column."""
        assert self.moments is not None and self.moments.scatter is not None
        return self.moments.scatter.ravel() / self.moments.n


def _merge_missing(parts: Sequence[dict[str, Missing]]) -> dict[str, Missing]:
    found: dict[str, Missing] = {}
    for part in parts:
        for name, missing in part.items():
            before = found.get(name, Missing(0, missing.row))
            found[name] = Missing(before.count + missing.count, before.row)
    return found


@dataclass(frozen=True)
class ColumnScan:
    """Function from a piece to its statistics, with columns encoded and the label column counted."""

    shards: ParquetShards
    encoding: Encoding
    label: str | None

    def __call__(self, piece: Piece) -> ColumnStats:
        table = self.shards.read(piece, [*self.encoding.columns, *([] if self.label is None else [self.label])])
        labels = Counter() if self.label is None else _count_values(table.column(self.label))
        nulls = _shift(find_nulls(table, self.encoding), piece.first)
        if nulls:
            return ColumnStats(nulls, {}, None, np.zeros(len(self.encoding.names)), labels, 0)
        check_vectors(table, self.encoding.plain, self.encoding.vectors)
        X = to_numbers(table, self.encoding)
        nonfinite = _shift(find_nonfinite(X, self.encoding), piece.first)
        moments = None if nonfinite else ClassMoments.of(X, np.zeros(len(X), dtype=np.intp), 1, "variances")
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
        return ColumnStats(nulls, nonfinite, moments, largest, labels, checksum(X, piece.first))


def _shift(missing: dict[str, Missing], first: int) -> dict[str, Missing]:
    return {name: Missing(found.count, found.row + first) for name, found in missing.items()}


# -- labels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelCodes:
    """Codes 0, 1, … of labels, in the sorted order of classes, −1 for unlabelled."""

    classes: Classes
    codes: dict[Hashable, int]

    @classmethod
    def from_counts(cls, counts: Counter[Hashable], column: str) -> LabelCodes:
        """Build from the number of rows of each label; text becomes numbers if all of it is."""
        values = np.empty(len(counts), dtype=object)
        values[:] = list(counts)
        # Each value twice: as_labels warns of as many classes as values.
        found = as_labels(np.repeat(refuse_measurements(parse_numbers(values), column), 2))
        codes = found.codes[::2]
        sizes = np.zeros(len(found.classes) + 1, dtype=np.int64)
        np.add.at(sizes, codes, np.array(list(counts.values()), dtype=np.int64))  # −1 is the last
        classes = Classes(found.classes, sizes[:-1], int(sizes[-1]))
        return cls(classes, dict(zip(counts, codes.tolist(), strict=True)))

    def encode(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the code of each label."""
        encoded = column.combine_chunks().dictionary_encode()
        # The dictionary of a categorical column may have values that no row has.
        codes = [self.codes.get(_key(value), -1) for value in encoded.dictionary.to_pylist()]
        place = encoded.indices.fill_null(len(codes)).to_numpy()
        return np.array([*codes, -1], dtype=np.int64)[place]


def _count_values(column: pa.ChunkedArray) -> Counter[Hashable]:
    found = column.value_counts()
    counts: Counter[Hashable] = Counter()
    for value, n in zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True):
        counts[_key(value)] += n
    return counts


def _key(value: Hashable) -> Hashable:
    return None if value != value else value  # NaN is equal to nothing
