"""What the metric weighs: features, pairs of features, directions."""

from __future__ import annotations

from typing import Any

from .markup import Cell, Column, chart, number, percent, section, table
from .sheet import Sheet, share_cell, told
from .views import spectrum

__all__ = ["features"]

_N_FEATURES, _N_PAIRS = 30, 20
_READING = (
    "A feature that tells rows apart as they should be brings much to the distances of unalike rows and little to "
    "those of alike ones. Shares are of squared learned distances and add up to 100 %.",
    "Features, by what they bring to the distances of {} rows",
)
_WEIGHTS_ALONE = (
    "Which of these rows are alike is not known here, so what features bring to distances is not either. A weight is "
    "what a difference of one standard deviation in this column alone adds to the squared distance. Give labels to see "
    "shares.",
    "Features, by weight",
)


def features(sheet: Sheet) -> str:
    return section("features", "What it weighs", told(_feature_tables, sheet), _spectrum(sheet))


def _feature_tables(sheet: Sheet) -> str:
    f, shares = sheet.findings, sheet.findings.shares
    features, pairs = shares.features(f.names), shares.pairs(f.names)
    kinds = [kind for kind in ("alike", "unalike") if kind in features]
    totals = {kind: float(features[kind].sum()) or 1.0 for kind in kinds}
    widest = {kind: max(float(features[kind].max()) / totals[kind], 1e-12) for kind in kinds}
    columns = [Column("Feature"), Column("Weight", True, "What one standard deviation adds to the squared distance")]
    columns += [Column(f"Share of {kind} distances", True) for kind in kinds]
    rows = [
        [
            Cell(str(name)),
            Cell(number(row["weight"]), f"{row['weight']:.6g}"),
            *(share_cell(row[kind] / totals[kind], widest[kind], kind) for kind in kinds),
        ]
        for name, row in features.head(_N_FEATURES).iterrows()
    ]
    more = f" The first {_N_FEATURES} of {len(features):,} are listed." if len(features) > _N_FEATURES else ""
    plain = "" if f.named else " Columns have no names here; pass names= to see them."
    words, title = _READING if kinds else _WEIGHTS_ALONE
    return (
        f"<p>{words}{more}{plain}</p>"
        + table(title.format(kinds[-1] if kinds else ""), columns, rows, name="features-table")
        + _feature_pairs(pairs, kinds, totals)
    )


def _feature_pairs(pairs: Any, kinds: list[str], totals: dict[str, float]) -> str:
    if not len(pairs):
        return ""
    columns = [Column("Feature"), Column("With"), Column("Weight", True)]
    columns += [Column(f"Part of {kind} distances", True) for kind in kinds]
    rows = [
        [
            Cell(str(name)),
            Cell(row["with"]),
            Cell(number(row["weight"]), f"{row['weight']:.6g}"),
            *(Cell(percent(row[k] / totals[k]), f"{row[k] / totals[k]:.6g}") for k in kinds),
        ]
        for name, row in pairs.head(_N_PAIRS).iterrows()
    ]
    return (
        "<h3>Features that count together</h3><p>What a pair of features adds beyond what each brings alone. "
        "Below zero, a difference in one makes up for a difference in the other.</p>"
        + table("Pairs of features, by how much they add or take", columns, rows, name="feature-pairs-table")
    )


def _spectrum(sheet: Sheet) -> str:
    values, n = spectrum(sheet.findings.metric)
    floor = max(max(values, default=1.0) * 1e-9, 1e-12)
    sheet.charts["spectrum"] = {"values": values, "n": n, "floor": floor}
    stretched, shrunk = sum(v > 1.05 for v in values), sum(v < 0.95 for v in values)
    words = f"{stretched} of the {len(values)} directions drawn are stretched, {shrunk} shrunk"
    return (
        "<h3>Directions</h3><p>Each direction of the space is stretched or shrunk by what was learned: above the "
        "line rows are pulled apart along it, below it differences count for less.</p>"
        + chart("spectrum", f"Eigenvalues relative to the prior: {words}", words[0].upper() + words[1:] + ".")
    )
