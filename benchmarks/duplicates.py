"""Duplicates among the records of two libraries (dblp-acm): precision and recall from 300 labelled pairs."""

from __future__ import annotations

import csv
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.data import locate
from mahalo import Constraints
from mahalo.dedupe import Columns, Deduplicator, Duplicates, fold_text, number_columns, propose_pairs, text_columns
from mahalo.dedupe.candidates import Neighborhood, sq_pair_distances
from mahalo.dedupe.columns import scaled_rows
from mahalo.dedupe.groups import find_groups
from mahalo.pairs import PairClassifier
from mahalo.text import load_encoder

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder

__all__ = ["Records", "load_records", "run"]

N_DRAWS, N_LABELLED = 3, 300
FIRST_SEED = 20  # of the draws; the way pairs are proposed was settled on others
PRECISION, TOLERANCE, RECALL = 0.95, 0.02, 0.95
TEXTS, NUMBERS = ("title", "authors", "venue"), ("year",)
_REMEDY = "Get the DBLP-ACM records of the database group of Leipzig University as CSV."


@dataclass(frozen=True, eq=False)
class Records:
    """Columns of two tables by name, and the pairs of rows that are the same."""

    first: dict[str, list[str]]
    second: dict[str, list[str]]
    matches: np.ndarray


@dataclass(frozen=True)
class _Outcome:
    """Precision and recall of one draw, beside the recall of cosine at the same precision, and of PairClassifier."""

    tables: str
    draw: int
    n_same: int
    precision: float
    expected: float
    recall: float
    n_pairs: int
    n_doubtful: int
    cosine: float
    classifier: tuple[float, float]  # precision and recall
    seconds: float


def load_records() -> Records:
    """Return the records of DBLP and ACM."""
    rows = [_read(name) for name in ("dblp.csv", "acm.csv", "matches.csv")]
    place = [{row["id"]: k for k, row in enumerate(table)} for table in rows[:2]]
    matches = np.array([(place[0][row["idDBLP"]], place[1][row["idACM"]]) for row in rows[2]])
    columns = [{name: [row[name] for row in table] for name in (*TEXTS, *NUMBERS)} for table in rows[:2]]
    return Records(columns[0], columns[1], matches)


def _read(name: str) -> list[dict[str, str]]:
    with open(locate("dblp-acm", name, _REMEDY), encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def run(settings: Settings) -> Report:
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
    try:
        records = load_records()
    except FileNotFoundError as error:
        return Report("duplicates", checks=(), notes=(f"skipped: {error}",))
    outcomes = []
    for tables in ("two tables", "one table"):
        columns, against, matches = _pose(records, tables)
        similar = _cosines(records, tables)
        for draw in range(1 if settings.quick else N_DRAWS):
            outcomes.append(_judge(tables, FIRST_SEED + settings.seed + draw, columns, against, matches, similar))
    return Report(
        name="duplicates",
        checks=tuple(check for one in outcomes for check in _checks(one)),
        tables=(_table(outcomes),),
        notes=(
            f"{len(records.first['title']):,} and {len(records.second['title']):,} records with {', '.join(TEXTS)} and "
            f"{', '.join(NUMBERS)}; {len(records.matches):,} are the same",
            f"{N_LABELLED} pairs of `propose_pairs`, labelled by the truth; precision asked for: {PRECISION}",
            "doubtful: pairs with a probability below 0.5 of their own; the precision is that of all together",
            "PairClassifier: precision and recall by its probabilities, learned from the same distances of the pairs",
            "cosine: texts joined and encoded as one, recall at the threshold with the same precision",
        ),
        numbers={"draws": [vars(one) for one in outcomes]},
    )


def _pose(records: Records, tables: str) -> tuple[Columns, Columns | None, set[tuple[int, int]]]:
    """Return the columns of one table or of two, and the pairs of rows that are the same."""
    encoder = load_encoder()
    first, second = (text_columns({name: side[name] for name in TEXTS}, encoder) for side in _sides(records))
    years = [{name: np.array(side[name], dtype=float) for name in NUMBERS} for side in _sides(records)]
    numbers = number_columns(*years)
    first, second = first | numbers[0], second | numbers[1]
    if tables == "two tables":
        return first, second, set(map(tuple, records.matches.tolist()))
    shift = len(records.first["title"])
    joined = {name: np.vstack([first[name], second[name]]) for name in first}
    return joined, None, {(a, b + shift) for a, b in records.matches.tolist()}


def _sides(records: Records) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    return records.first, records.second


def _cosines(records: Records, tables: str) -> np.ndarray:
    """Return the similarity of all pairs of rows by one vector of all columns; −1 for pairs that do not count."""
    encoder = load_encoder()
    names = (*TEXTS, *NUMBERS)
    E, F = (encoder.encode(list(map(_joined, zip(*(side[n] for n in names), strict=True)))) for side in _sides(records))
    if tables == "two tables":
        return E @ F.T
    both = np.vstack([E, F])
    return np.triu(both @ both.T + 1.0, 1) - 1.0


def _joined(values: Sequence[str]) -> str:
    return fold_text(" ".join(values))


def _judge(
    tables: str,
    seed: int,
    columns: Columns,
    against: Columns | None,
    matches: set[tuple[int, int]],
    similar: np.ndarray,
) -> _Outcome:
    began = time.perf_counter()
    pairs = propose_pairs(columns, N_LABELLED, against=against, random_state=seed)
    same = np.array([tuple(pair) in matches for pair in pairs.tolist()])
    finder = Deduplicator(precision=PRECISION).fit(columns, pairs, same, against=against)
    found = finder.find(columns, against=against)
    seconds = time.perf_counter() - began
    precision, recall = _precision_and_recall(found, matches)
    return _Outcome(
        tables,
        seed,
        int(same.sum()),
        precision,
        found.expected_precision,
        recall,
        len(found.pairs),
        found.n_doubtful,
        _cosine_recall(similar, matches, precision),
        _precision_and_recall(_by_classifier(finder, columns, against, pairs, same), matches),
        seconds,
    )


def _by_classifier(
    finder: Deduplicator, columns: Columns, against: Columns | None, pairs: np.ndarray, same: np.ndarray
) -> Duplicates:
    """Return the groups by the probabilities of a PairClassifier of the distances that the finder has of a pair."""
    others = columns if against is None else against
    rows, other_rows = scaled_rows(columns, finder.weights_), scaled_rows(others, finder.weights_)
    near = Neighborhood.search(rows, None if against is None else other_rows, finder.n_candidates, finder.backend)

    def features(pairs: np.ndarray) -> np.ndarray:
        sq = [sq_pair_distances(block, others[name], pairs) for name, block in columns.items()]
        return np.sqrt(np.column_stack([*sq, near.distances(pairs)[:, 1]]))

    F = features(pairs)
    unit = F.std(axis=0)
    # A pair is the row of its distances beside a row of zeros, so that a metric of rows weighs the distances.
    ends = np.arange(2 * len(F)).reshape(2, -1).T
    answered = Constraints.from_pairs(similar=ends[same], dissimilar=ends[~same])
    X = np.vstack([np.zeros_like(F), F / unit])
    with warnings.catch_warnings(action="ignore"):  # different pairs that agree in all columns
        classifier = PairClassifier(random_state=0).fit(X, constraints=answered)

    def probability(pairs: np.ndarray) -> np.ndarray:
        G = features(pairs) / unit
        return classifier.calibration_(classifier.metric_.pair_distances(np.zeros_like(G), G))

    return find_groups(near.pairs(), probability, PRECISION, len(rows), None if against is None else len(other_rows))


def _precision_and_recall(found: Duplicates, matches: set[tuple[int, int]]) -> tuple[float, float]:
    n_right = sum(tuple(pair) in matches for pair in found.pairs.tolist())
    return n_right / max(1, len(found.pairs)), n_right / len(matches)


def _cosine_recall(similar: np.ndarray, matches: set[tuple[int, int]], precision: float) -> float:
    """Return the recall of all pairs above a similarity whose precision is at least this one."""
    is_same = np.zeros(similar.shape, dtype=bool)
    is_same[tuple(np.array(sorted(matches)).T)] = True
    top = np.argpartition(-similar, 4 * len(matches), axis=None)[: 4 * len(matches)]
    top = top[np.argsort(-similar.ravel()[top], kind="stable")]
    right = np.cumsum(is_same.ravel()[top])
    allowed = right / np.arange(1, len(top) + 1) >= precision
    return float(right[allowed].max(initial=0) / len(matches))


def _checks(one: _Outcome) -> list[Check]:
    name = f"{one.tables}, draw {one.draw}"
    return [
        Check(f"{name}: precision from {PRECISION} by", abs(one.precision - PRECISION), TOLERANCE, at_least=False),
        Check(f"{name}: recall", one.recall, RECALL),
        Check(f"{name}: recall above cosine by", one.recall - one.cosine, 0.0),
    ]


def _table(outcomes: list[_Outcome]) -> Table:
    columns = ("tables", "draw", "labelled the same", "precision", "expected", "recall", "doubtful", "recall of cosine")
    columns += ("PairClassifier", "seconds")
    rows = tuple(
        (
            one.tables,
            one.draw,
            f"{one.n_same} of {N_LABELLED}",
            *(f"{value:.3f}" for value in (one.precision, one.expected, one.recall)),
            f"{one.n_doubtful} of {one.n_pairs:,}",
            f"{one.cosine:.3f}",
            "{:.3f}, {:.3f}".format(*one.classifier),
            f"{one.seconds:.0f}",
        )
        for one in outcomes
    )
    return Table(f"all pairs found, for a precision of {PRECISION}", columns, rows)
