"""Export of a session: the model, the answers as CSV, a report, and the lines that load them."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import Constraints
from ..metric import Metric
from ..persistence import write_bytes
from ..tables.formatting import escape_formula
from .answers import Answers
from .learning import Consolidation

MODEL, PAIRS, TRIPLETS, REPORT, USE = "metric.safetensors", "answers.csv", "triplets.csv", "report.html", "use.py"


@dataclass(frozen=True)
class Export:
    """Files written by `Session.export`.

    Attributes
    ----------
    folder : Path
    files : tuple of str
        Their names.
    python : str
        Lines that load the model.
    command : str
        Command that searches a table with it.
    notes : tuple of str
        What was not written, and why.
    """

    folder: Path
    files: tuple[str, ...]
    python: str
    command: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RowNames:
    """Names of rows and columns, and labels, where they are known."""

    ids: Sequence[str] | None = None
    names: Sequence[str] | None = None
    y: ArrayLike | None = None
    source: str = "data.csv"

    def id_of(self, row: int) -> str:
        """Return the name of a row, its number if it has none."""
        return str(row) if self.ids is None else str(self.ids[row])


def export_answers(
    folder: str | PathLike,
    X: np.ndarray,
    answers: Answers,
    learned: Consolidation,
    rows: RowNames,
    finish: Callable[[Metric], Metric] = lambda metric: metric,
) -> Export:
    """Write the model of a session, its answers, a report, and how to load them.

    Parameters
    ----------
    folder : str or path-like
        Created if it does not exist.
    X : ndarray
        The rows of the session.
    answers : Answers
    learned : Consolidation
        What was learned from all of them.
    rows : RowNames
    finish : callable, optional
        Adds to the saved metric what tables need: scaling of columns, names.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files, notes = [MODEL, PAIRS], []
    finish(learned.metric).save(folder / MODEL)
    pairs = [(*a.rows, int(a.same)) for a in answers.pairs if a.same is not None]
    write_bytes(
        folder / PAIRS, csv_text(("left", "right", "same"), [(rows.id_of(i), rows.id_of(j), s) for i, j, s in pairs])
    )
    triplets = [tuple(map(rows.id_of, a.rows)) for a in answers.triplets if a.same]
    if triplets:
        write_bytes(folder / TRIPLETS, csv_text(("row", "nearer", "farther"), triplets))
        files.append(TRIPLETS)
    if (reason := _write_report(folder / REPORT, X, answers, learned, rows)) is None:
        files.append(REPORT)
    else:
        notes.append(reason)
    python, command = _usage(folder, rows)
    write_bytes(folder / USE, python.encode("utf-8"))
    return Export(folder, (*files, USE), python, command, tuple(notes))


def csv_text(header: Sequence[str], table: Sequence[Sequence[object]]) -> bytes:
    """Return a CSV file; an apostrophe precedes texts that a spreadsheet would run as formulas."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_escape(header))
    writer.writerows(map(_escape, table))
    return buffer.getvalue().encode("utf-8", "replace")


def _escape(cells: Sequence[object]) -> list[object]:
    return [escape_formula(cell) if isinstance(cell, str) else cell for cell in cells]


def _write_report(path: Path, X: np.ndarray, answers: Answers, learned: Consolidation, rows: RowNames) -> str | None:
    """Write the report; return why not, if it could not be written."""
    if not learned.is_learned:
        return "no report yet: there are no answers to learn from."
    try:
        from ..report import write
    except ImportError as error:
        return f"no report: {error}"
    index = np.array([a.rows for a in answers.pairs if a.same is not None], dtype=np.intp).reshape(-1, 2)
    same = np.array([a.same for a in answers.pairs if a.same is not None], dtype=bool)
    constraints = Constraints.from_pairs(index, same=same, n_rows=len(X))
    triplets = [a.rows for a in answers.triplets if a.same]
    if triplets:
        constraints = constraints + Constraints.from_triplets(triplets, n_rows=len(X))
    try:
        write(learned.metric, X, rows.y, path, constraints=constraints, names=rows.names, ids=rows.ids)
    except ImportError as error:
        return f"no report: {error}"
    return None


def _usage(folder: Path, rows: RowNames) -> tuple[str, str]:
    """Return the Python lines and the command that use the files of a folder."""
    python = (
        '"""Use the distance that was learned in the studio."""\n\n'
        "from pathlib import Path\n\n"
        "import mahalo\n\n"
        "folder = Path(__file__).parent\n"
        f'metric = mahalo.load(folder / "{MODEL}")\n'
        "print(metric)  # metric.distances(X), metric.transform(X)\n"
    )
    command = ("mahalo", "neighbors", str(folder / MODEL), "--index", rows.source, "--query", rows.source, "-k", "10")
    return python, shlex.join(command)
