"""Answers that hold: entries of a log without those taken back or replaced, and what contradicts what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from .answer_log import Entry

HELD_OUT_EVERY = 10


@dataclass(frozen=True)
class Answer:
    """Answer of people about one pair or triplet.

    Attributes
    ----------
    kind : {"pair", "triplet"}
    rows : tuple of int
        A pair in ascending order; (anchor, nearer, farther) of a triplet, "nearer" being what was answered last.
    same : bool or None
        For a pair: the answer on which all annotators agree, None where they do not. For a triplet: True, or None where
        they do not agree.
    ordinal : int
        Number of answers in the log before the first about these rows, skipped and undone ones included.
    by : dict
        Latest answer of each annotator.
    n_times : int
        Number of times that the answer was given: more than once if it was asked again.
    """

    kind: str
    rows: tuple[int, ...]
    same: bool | None
    ordinal: int
    by: dict[str, str] = field(compare=False)
    n_times: int = 1

    @property
    def held_out(self) -> bool:
        """True for every tenth answer, which serves to judge."""
        return self.ordinal % HELD_OUT_EVERY == HELD_OUT_EVERY - 1

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """Identity of the question: its kind and its rows, in ascending order after the anchor of a triplet."""
        return self.kind, _question_rows(self.kind, self.rows)


@dataclass(frozen=True)
class Answers:
    """Answers that hold, in the order in which their rows were first asked about.

    Attributes
    ----------
    pairs, triplets : tuple of Answer
    n_entries : int
        Answers to pairs and triplets in the log, skipped and undone ones included.
    skipped : dict
        Question (kind, rows) to the annotators that could not say.
    labels : dict
        Row to the entry of the latest decision about its label.
    by_last : dict
        Annotator to the entries that `undo` takes back, oldest first.
    """

    pairs: tuple[Answer, ...] = ()
    triplets: tuple[Answer, ...] = ()
    n_entries: int = 0
    skipped: dict[tuple[str, tuple[int, ...]], frozenset[str]] = field(default_factory=dict)
    labels: dict[int, Entry] = field(default_factory=dict)
    by_last: dict[str, tuple[Entry, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Answers:
        """Return the answers that hold after all entries of a log."""
        entries = tuple(entries)
        undone = {entry.answer for entry in entries if entry.kind == "undo"}
        questions: dict[tuple[str, tuple[int, ...]], list[tuple[int, Entry]]] = {}
        labels: dict[int, Entry] = {}
        by_last: dict[str, list[Entry]] = {}
        n_entries = 0
        for entry in entries:
            if entry.kind == "undo":
                continue
            if entry.kind != "label":
                n_entries += 1
            if entry.id in undone:
                continue
            by_last.setdefault(entry.annotator, []).append(entry)
            if entry.kind == "label":
                labels[entry.rows[0]] = entry
            else:
                key = entry.kind, _question_rows(entry.kind, entry.rows)
                questions.setdefault(key, []).append((n_entries - 1, entry))
        found: dict[str, list[Answer]] = {"pair": [], "triplet": []}
        skipped = {}
        for key, given in questions.items():
            answer = _answer_of(key, given)
            if answer is None:
                skipped[key] = frozenset(entry.annotator for _, entry in given)
            else:
                found[key[0]].append(answer)
        pairs, triplets = (tuple(sorted(found[kind], key=lambda a: a.ordinal)) for kind in ("pair", "triplet"))
        return cls(pairs, triplets, n_entries, skipped, labels, {name: tuple(last) for name, last in by_last.items()})

    @property
    def n_answers(self) -> int:
        """Number of pairs and triplets with an answer."""
        return len(self.pairs) + len(self.triplets)

    def before(self, ordinal: int) -> Answers:
        """Return the answers whose rows were first asked about before the given ordinal."""
        pairs, triplets = (tuple(a for a in found if a.ordinal < ordinal) for found in (self.pairs, self.triplets))
        return Answers(pairs, triplets, ordinal)

    def training(self) -> Answers:
        """Return the answers that are not held out."""
        pairs, triplets = (tuple(a for a in found if not a.held_out) for found in (self.pairs, self.triplets))
        return Answers(pairs, triplets, self.n_entries)


@dataclass(frozen=True)
class Contradiction:
    """Answers that cannot all be right.

    Attributes
    ----------
    kind : {"annotators", "implied"}
        Two people disagree about one pair or triplet; or a "different" pair is connected by "same" pairs.
    answers : tuple of Answer
        The disputed answer; for "implied" the "different" pair first, then the "same" pairs that connect its rows.
    """

    kind: str
    answers: tuple[Answer, ...]


def contradictions(answers: Answers) -> tuple[Contradiction, ...]:
    """Return all disputed answers, and for every "different" pair that "same" pairs connect the shortest connection."""
    disputed = [Contradiction("annotators", (a,)) for a in (*answers.pairs, *answers.triplets) if a.same is None]
    similar = {a.rows: a for a in answers.pairs if a.same}
    neighbours: dict[int, list[int]] = {}
    for i, j in similar:
        neighbours.setdefault(i, []).append(j)
        neighbours.setdefault(j, []).append(i)
    implied = []
    for answer in answers.pairs:
        if answer.same is False and (path := _shortest_path(neighbours, *answer.rows)):
            links = tuple(similar[min(edge), max(edge)] for edge in pairwise(path))
            implied.append(Contradiction("implied", (answer, *links)))
    return (*disputed, *implied)


def consistent(pairs: Iterable[Answer], sq_distance: np.ndarray) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
    """Split pairs with an answer into those that agree with each other and those that do not.

    "Same" answers join rows into groups, the most certain first: those given more than once, then those at smaller
    distance. One that would join two rows which someone calls different is left out, so that no wrong "same" can undo
    what others have said.

    Parameters
    ----------
    pairs : iterable of Answer
    sq_distance : ndarray
        Squared distance of each pair.
    """
    pairs = tuple(pairs)
    decided = [k for k, answer in enumerate(pairs) if answer.same is not None]
    different = [pairs[k].rows for k in decided if not pairs[k].same]
    rows = {row for k in decided for row in pairs[k].rows}
    groups = DisjointSet(rows)
    order = sorted(
        (k for k in decided if pairs[k].same), key=lambda k: (-pairs[k].n_times, sq_distance[k], pairs[k].rows)
    )
    enemies: dict[int, set[int]] = {row: set() for row in rows}
    for i, j in different:
        enemies[i].add(j)
        enemies[j].add(i)
    left_out = []
    for k in order:
        a, b = (groups.subset(row) for row in pairs[k].rows)
        if any(not enemies[row].isdisjoint(b) for row in a):
            left_out.append(k)
        else:
            groups.merge(*pairs[k].rows)
    kept = tuple(pairs[k] for k in decided if k not in left_out)
    return kept, tuple(pairs[k] for k in left_out)


def _question_rows(kind: str, rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(rows)) if kind == "pair" else (rows[0], *sorted(rows[1:]))


def _answer_of(key: tuple[str, tuple[int, ...]], given: list[tuple[int, Entry]]) -> Answer | None:
    """Return what the entries about one question amount to; None if all that hold are "skip"."""
    kind, rows = key
    latest = {entry.annotator: entry for _, entry in given}
    decided = {name: _canonical(entry) for name, entry in latest.items() if entry.answer != "skip"}
    if not decided:
        return None
    ordinal = next(number for number, entry in given if entry.answer != "skip")
    agreed = len(set(decided.values())) == 1
    last = next(entry for _, entry in reversed(given) if decided.get(entry.annotator) == _canonical(entry))
    n_times = sum(_canonical(entry) == _canonical(last) for _, entry in given)
    if kind == "pair":
        return Answer(kind, rows, (last.answer == "same") if agreed else None, ordinal, decided, n_times)
    anchor, first, second = last.rows
    nearer, farther = (first, second) if last.answer == "first" else (second, first)
    return Answer(kind, (anchor, nearer, farther), True if agreed else None, ordinal, decided, n_times)


def _canonical(entry: Entry) -> str:
    """Return an answer that does not depend on the order in which the rows of a triplet were shown."""
    if entry.kind == "pair" or entry.answer == "skip":
        return entry.answer
    return str(entry.rows[1] if entry.answer == "first" else entry.rows[2])


def _shortest_path(neighbours: dict[int, list[int]], start: int, end: int) -> list[int]:
    """Return the rows of the shortest path by breadth-first search; empty if there is none."""
    before: dict[int, int] = {start: start}
    front = [start]
    while front and end not in before:
        following = []
        for row in front:
            for other in neighbours.get(row, ()):
                if other not in before:
                    before[other] = row
                    following.append(other)
        front = following
    if end not in before:
        return []
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
