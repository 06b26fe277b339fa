"""Weights of features, of pairs of features and of directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..drawing import learned_spectrum
from ..explain.local_weights import LocalWeights
from .findings import Findings
from .formatting import number, percent
from .parts import Cell, Chart, Column, Table, share_cell

if TYPE_CHECKING:
    from pandas import DataFrame

_N_FEATURES, _N_PAIRS = 30, 20
_HINT = "Squared distance that a difference of one standard deviation adds"


@dataclass(frozen=True)
class FeatureTables:
    """Features by their shares of squared distances, or by weight where it is not known which rows are similar.

    `varies` says that weights vary with place, and are means over rows.
    """

    has_shares: bool
    varies: bool
    has_names: bool
    n_features: int
    features: Table
    pairs: Table | None

    @property
    def n_listed(self) -> int:
        """Number of features in the table."""
        return len(self.features.rows)


def feature_tables(findings: Findings) -> FeatureTables:
    """Return the weights of features, by place or with their shares of distances, and of pairs of features."""
    local = findings.local_weights
    weights = findings.shares if local is None else local
    features, pairs = weights.features(findings.names), weights.pairs(findings.names)
    totals = {kind: float(features[kind].sum()) or 1.0 for kind in ("similar", "dissimilar") if kind in features}
    return FeatureTables(
        has_shares=bool(totals),
        varies=local is not None,
        has_names=findings.has_names,
        n_features=len(features),
        features=_feature_table(features, totals, local),
        pairs=_pair_table(pairs, totals) if len(pairs) else None,
    )


def _feature_table(features: DataFrame, totals: dict[str, float], local: LocalWeights | None) -> Table:
    regions = () if local is None else tuple(local.regions)
    largest = {kind: max(float(features[kind].max()) / total, 1e-12) for kind, total in totals.items()}
    columns = [Column("Feature"), Column("Weight", True, _HINT), *(Column(name.title(), True) for name in regions)]
    columns += [Column(f"Share of {kind} pairs", True) for kind in totals]
    rows = [
        [
            Cell(str(name)),
            *(_number_cell(row[column]) for column in ("weight", *regions)),
            *(share_cell(row[kind] / total, largest[kind], kind) for kind, total in totals.items()),
        ]
        for name, row in features.head(_N_FEATURES).iterrows()
    ]
    order = "weight" if local is None else "mean weight"
    if totals:
        order = f"their share of the squared distances of {list(totals)[-1]} pairs"
    return Table(f"Features, by {order}", columns, rows, "features-table")


def _pair_table(pairs: DataFrame, totals: dict[str, float]) -> Table:
    columns = [Column("Feature"), Column("With"), Column("Weight", True)]
    columns += [Column(f"Share of {kind} pairs", True) for kind in totals]
    rows = [
        [
            Cell(str(name)),
            Cell(row["with"]),
            _number_cell(row["weight"]),
            *(Cell(percent(row[kind] / total), f"{row[kind] / total:.6g}") for kind, total in totals.items()),
        ]
        for name, row in pairs.head(_N_PAIRS).iterrows()
    ]
    return Table("Pairs of features, by the size of what they add or subtract", columns, rows, "feature-pairs-table")


def _number_cell(value: float) -> Cell:
    return Cell(number(value), f"{value:.6g}")


def spectrum_chart(findings: Findings) -> Chart:
    """Return the eigenvalues of the metric relative to its prior."""
    spectrum = learned_spectrum(findings.metric)
    words = (
        f"{spectrum.n_stretched:,} of {spectrum.n_directions:,} directions are stretched, {spectrum.n_shrunk:,} shrunk"
    )
    return Chart("spectrum", f"Eigenvalues relative to the prior: {words}", f"{words}.", spectrum)
