"""Example tables for the commands: scikit-learn's wine, and questions to a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..tables.output_files import check_output, write_table

_KINDS = (".csv", ".tsv", ".parquet")
_NEW = slice(9, None, 18)  # bottles of the second table
_N_NOTES, _N_LABELLED, _N_POPULAR, _N_OPENED = 160, 200, 4, 3
_FEWEST_LETTERS = 4  # of the words that a note keeps


@dataclass(frozen=True)
class SampleTables:
    """Files that were written, and the arguments of a command to try on them."""

    files: dict[str, Path]
    next: tuple[str, ...]


def write_wine(path: Path, force: bool) -> SampleTables:
    """Write scikit-learn's wine, with columns `bottle` and `cultivar`, to two files.

    Most bottles are in `path`; the others, without `cultivar`, in a file `new-bottles` beside it.
    """
    from sklearn.datasets import load_wine

    wine = load_wine()
    bottles = [f"b{k:03}" for k in range(len(wine.data))]
    columns = {"bottle": bottles} | dict(zip(wine.feature_names, wine.data.T.tolist(), strict=True))
    held_out = range(len(bottles))[_NEW]
    rest = [k for k in range(len(bottles)) if k not in held_out]
    cultivar = [str(wine.target_names[code]) for code in wine.target]
    tables = {
        "out": {name: [values[k] for k in rest] for name, values in (columns | {"cultivar": cultivar}).items()},
        "new": {name: [values[k] for k in held_out] for name, values in columns.items()},
    }
    files = _write(tables, {"out": path, "new": path.with_name(f"new-bottles{path.suffix}")}, force)
    return SampleTables(files, ("evaluate", str(path), "--label", "cultivar", "--id", "bottle"))


def write_questions(path: Path, force: bool) -> SampleTables:
    """Write 200 questions to a library with topics, and three tables beside them.

    `notes` holds 160 of them as a clerk noted them, in capitals and without short words, `labelled` pairs of a question
    and a note that are the same or not, and `clicks` notes as searches, each with three of the four questions of its
    topic that most visitors read.
    """
    from ..text.library_questions import load_library_questions

    questions = load_library_questions()
    topics, n = np.array(questions.topics), len(questions.texts)
    rng = np.random.default_rng(0)
    days, noted = rng.integers(1, 61, n), rng.permutation(n)[:_N_NOTES]
    note_days = days[noted] + rng.integers(0, 2, _N_NOTES)
    notes = [_note(questions.texts[k]) for k in noted]
    popular = {
        topic: rng.choice(np.flatnonzero(topics == topic), _N_POPULAR, replace=False)
        for topic in dict.fromkeys(questions.topics)
    }
    numbers, note_numbers = [f"q{k + 1:03}" for k in range(n)], [f"n{k + 1:03}" for k in range(_N_NOTES)]
    clicks = [
        (note.lower(), numbers[document])
        for note, k in zip(notes, noted, strict=True)
        if k not in popular[topics[k]]
        for document in rng.choice(popular[topics[k]], _N_OPENED, replace=False)
    ]
    pairs = _propose(questions.texts, days, notes, note_days)
    tables: dict[str, Mapping[str, Sequence[object]]] = {
        "out": {"number": numbers, "question": questions.texts, "topic": questions.topics, "day": days.tolist()},
        "notes": {"number": note_numbers, "question": notes, "day": note_days.tolist()},
        "clicks": dict(zip(("query", "document"), zip(*clicks, strict=True), strict=True)),
        "labelled": {
            "first": [numbers[k] for k in pairs[:, 0]],
            "second": [note_numbers[k] for k in pairs[:, 1]],
            "same": (pairs[:, 0] == noted[pairs[:, 1]]).astype(int).tolist(),
        },
    }
    beside = {name: path.with_name(f"{name}{path.suffix}") for name in tables if name != "out"}
    files = _write(tables, {"out": path} | beside, force)
    return SampleTables(files, ("evaluate", str(path), "--text", "question", "--label", "topic"))


def _note(question: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in question.upper()).split()
    return " ".join(word for word in words if len(word) >= _FEWEST_LETTERS)


def _propose(texts: Sequence[str], days: np.ndarray, notes: Sequence[str], note_days: np.ndarray) -> np.ndarray:
    """Return pairs of a question and a note to label, near by the letters of both and by their days."""
    from sklearn.feature_extraction.text import HashingVectorizer

    from ..dedupe import number_columns, propose_pairs

    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=256)
    numbers = number_columns({"day": days}, {"day": note_days})
    columns, against = (
        {"question": letters.transform(side).toarray()} | block
        for side, block in zip((texts, notes), numbers, strict=True)
    )
    return propose_pairs(columns, _N_LABELLED, against=against)


def _write(
    tables: Mapping[str, Mapping[str, Sequence[object]]], files: dict[str, Path], force: bool
) -> dict[str, Path]:
    """Write tables to their files, after a check of all of them; return the files."""
    first = files["out"]
    if first in [path for name, path in files.items() if name != "out"]:
        raise ValueError(f"--write {first.name} is the name of another table beside it; give another name.")
    for name, path in files.items():
        check_output(path, force, _KINDS, "--write" if name == "out" else "folder to --write")
    for name, columns in tables.items():
        write_table(files[name], columns)
    return files
