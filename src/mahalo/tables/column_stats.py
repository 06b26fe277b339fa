"""Statistics of the columns of a table that is read in pieces: missing values, moments, a checksum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from ..explain.fingerprint import checksum
from ..explain.imputation import Imputation, check_filled
from ..linalg import ClassMoments
from ..metric import Scaling
from ..progress import Progress
from .encoding import Encoding, Missing, convert, raise_if_missing
from .table import Piece, TableSource, merge_pieces


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of some rows; `moments`, of all columns as one class, are None if values are missing."""

    missing: dict[str, Missing]
    moments: ClassMoments | None
    largest: np.ndarray
    checksum: int

    @classmethod
    def scan(
        cls, table: TableSource, encoding: Encoding, progress: Progress, imputation: Imputation | None = None
    ) -> ColumnStats:
        """Read all rows once, missing numbers filled in; raise ValueError if other values are missing or not finite."""
        stats = merge_pieces(table, partial(_scan_piece, table, encoding, imputation), _merge, "columns", progress)
        raise_if_missing(table, stats.missing)
        return stats

    @property
    def variance(self) -> np.ndarray:
        """Variance of each column."""
        assert self.moments is not None and self.moments.scatter is not None
        return self.moments.scatter.ravel() / self.moments.n

    def scaling(self) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1."""
        assert self.moments is not None
        return Scaling.from_moments(self.moments.means[0], self.variance, self.largest)


def _scan_piece(table: TableSource, encoding: Encoding, imputation: Imputation | None, piece: Piece) -> ColumnStats:
    X, found = convert(table.read(piece, encoding.columns), encoding, keep_nan=imputation is not None)
    X = X if X is None or imputation is None else imputation.fill(X)
    missing = {name: Missing(one.count, one.row + piece.first) for name, one in found.items()}
    if X is None or missing:
        return ColumnStats(missing, None, np.zeros(len(encoding.names)), 0)
    moments = ClassMoments.of(X, np.zeros(len(X), dtype=np.intp), 1, "variances")
    return ColumnStats(missing, moments, np.maximum(X.max(axis=0), -X.min(axis=0)), checksum(X, piece.first))


def _merge(parts: Sequence[ColumnStats]) -> ColumnStats:
    """Return the statistics of all rows of parts in their order."""
    moments = [part.moments for part in parts if part.moments is not None]
    return ColumnStats(
        _merge_missing([part.missing for part in parts]),
        reduce(ClassMoments.merge, moments) if len(moments) == len(parts) else None,
        np.max([part.largest for part in parts], axis=0),
        sum(part.checksum for part in parts) % 2**64,
    )


def _merge_missing(parts: Sequence[dict[str, Missing]]) -> dict[str, Missing]:
    missing: dict[str, Missing] = {}
    for part in parts:
        for name, found in part.items():
            before = missing.get(name, Missing(0, found.row))
            missing[name] = Missing(before.count + found.count, before.row)
    return missing


# -- means of columns with gaps ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnSums:
    """Sums and counts of the numbers of each column, and what else is missing, as in `ColumnStats`."""

    missing: dict[str, Missing]
    total: np.ndarray
    count: np.ndarray
    n_rows: int

    @classmethod
    def scan(cls, table: TableSource, encoding: Encoding, progress: Progress) -> ColumnSums:
        """Read all rows once; raise ValueError if values other than numbers are missing or not finite."""
        sums = merge_pieces(table, partial(_sum_piece, table, encoding), _merge_sums, "means", progress)
        raise_if_missing(table, sums.missing, may_impute=False)
        return sums

    @property
    def n_missing(self) -> int:
        return int((self.n_rows - self.count).sum())

    def imputation(self, names: Sequence[str]) -> Imputation:
        """Return the filling by the means of the columns."""
        check_filled(self.count > 0, names)
        return Imputation("mean", tuple((self.total / self.count).tolist()))


def _sum_piece(table: TableSource, encoding: Encoding, piece: Piece) -> ColumnSums:
    X, found = convert(table.read(piece, encoding.columns), encoding, keep_nan=True)
    missing = {name: Missing(one.count, one.row + piece.first) for name, one in found.items()}
    if X is None or missing:
        nothing = np.zeros(len(encoding.names))
        return ColumnSums(missing, nothing, nothing, len(piece))
    return ColumnSums(missing, np.nansum(X, axis=0), (~np.isnan(X)).sum(axis=0), len(piece))


def _merge_sums(parts: Sequence[ColumnSums]) -> ColumnSums:
    return ColumnSums(
        _merge_missing([part.missing for part in parts]),
        np.sum([part.total for part in parts], axis=0),
        np.sum([part.count for part in parts], axis=0),
        sum(part.n_rows for part in parts),
    )
