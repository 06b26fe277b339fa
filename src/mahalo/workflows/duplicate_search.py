"""Duplicates in tables: pairs to label, groups in a file, and a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..dedupe import Deduplicator, Duplicates, propose_pairs
from ..progress import SILENT, Progress
from ..tables.constraint_files import read_labelled_pairs
from ..tables.labels_and_ids import name_rows
from ..tables.options import RowOptions
from ..tables.output_files import write_table
from ..tables.records import Records, load_records


@dataclass(frozen=True)
class DuplicateSummary:
    """Groups that were found, and what was learned; `expected_precision` is NaN if no pair was found."""

    groups: int
    pairs: int
    doubtful: int
    expected_precision: float
    threshold: float
    candidates: int
    labelled_same: int
    labelled_different: int
    weights: dict[str, float]
    out: str
    page: str | None

    def to_dict(self) -> dict[str, object]:
        """Return the fields."""
        return asdict(self)


def write_proposals(
    rows: RowOptions, against: str | None, n_pairs: int, seed: int, out: Path, progress: Progress = SILENT
) -> int:
    """Write pairs that are worth labelling, with what they say and an empty column `same`; return their number."""
    first, second = load_records(rows, against, progress)
    other = first if second is None else second
    progress.show("comparing: nearest rows")
    pairs = propose_pairs(first.columns, n_pairs, against=None if second is None else second.columns, random_state=seed)
    firsts, others = pairs.T
    columns = {
        "first": name_rows(firsts, first.ids),
        "second": name_rows(others, other.ids),
        "same": np.full(len(pairs), "", dtype=object),
        "first_row": np.array([first.shown[row] for row in firsts], dtype=object),
        "second_row": np.array([other.shown[row] for row in others], dtype=object),
    }
    write_table(out, columns)
    return len(pairs)


def find_duplicates(
    rows: RowOptions,
    against: str | None,
    out: Path,
    page: Path | None = None,
    progress: Progress = SILENT,
    *,
    precision: float = 0.95,
    base_rate: float | None = None,
) -> DuplicateSummary:
    """Learn from the pairs of `rows`, and write the groups, and the page if one is asked for."""
    finder = Deduplicator(precision=precision, base_rate=base_rate)
    finder.check_parameters()
    first, second = load_records(rows, against, progress)
    other = first if second is None else second
    assert rows.pairs is not None
    sides = [(first.n_rows, first.ids), (other.n_rows, other.ids)]
    pairs, same = read_labelled_pairs(rows.pairs, sides, rows.text_format)
    other_columns = None if second is None else second.columns
    progress.show("learning: same or not")
    finder.fit(first.columns, pairs, same, against=other_columns)
    progress.show("comparing: candidate pairs")
    found = finder.find(first.columns, against=other_columns)
    if page is not None:
        from ..report.duplicates import write_duplicates_page

        write_duplicates_page(page, found, first.shown, other.shown, first.ids, other.ids)
    write_table(out, _group_columns(found, first, second))
    return DuplicateSummary(
        groups=found.n_groups,
        pairs=len(found.pairs),
        doubtful=found.n_doubtful,
        expected_precision=round(found.expected_precision, 4),
        threshold=round(found.threshold, 4),
        candidates=found.n_candidates,
        labelled_same=finder.n_same_,
        labelled_different=finder.n_different_,
        weights=finder.weights_,
        out=str(out),
        page=None if page is None else str(page),
    )


def _group_columns(found: Duplicates, first: Records, second: Records | None) -> dict[str, np.ndarray]:
    """Return one line for each row of a group: its group, its table, its name, and its best probability."""
    best = [np.zeros(first.n_rows), np.zeros(0 if second is None else second.n_rows)]
    for side in (0, 1):
        target = best[0] if second is None else best[side]
        np.maximum.at(target, found.pairs[:, side], found.probability)
    parts = []
    for number, (records, groups) in enumerate(((first, found.groups), (second, found.other_groups))):
        if records is None or groups is None:
            continue
        rows = np.flatnonzero(groups >= 0)
        names = name_rows(rows, records.ids).astype(str)
        parts.append((groups[rows], np.full(len(rows), number + 1), names, best[number][rows]))
    group, table, row, probability = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((np.arange(len(group)), table, group))
    columns = {"group": group, "table": table, "row": row, "probability": probability.round(4)}
    if second is None:
        del columns["table"]
    return {name: values[order] for name, values in columns.items()}
