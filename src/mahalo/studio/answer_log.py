"""AnswerLog: an append-only file of answers, one JSON object a line, on disk before an answer is acknowledged."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .file_lock import locked

_FORMAT, _VERSION = "mahalo answers", 1
_MAX_TEXT = 10_000  # characters of an id, a name or a label


@dataclass(frozen=True)
class DataIdentity:
    """Identity of the rows that a log belongs to: the number of rows and columns, and a digest of the values."""

    n_rows: int
    n_features: int
    digest: str


@dataclass(frozen=True)
class Entry:
    """Line of a log.

    Attributes
    ----------
    id : str
        Unique; an entry whose id the log has already is not written again.
    kind : {"pair", "triplet", "label", "undo"}
    rows : tuple of int
        Rows of a pair, (anchor, first, second) of a triplet, the row of a label; empty for "undo".
    answer : str
        "same", "different", "first", "second" or "skip"; for a label "keep", "change" or "drop"; for "undo" the id of
        the entry that is taken back.
    annotator : str
    why : str
        Reason for which the question was asked.
    label : str
        New label of a row, for "change".
    """

    id: str
    kind: str
    rows: tuple[int, ...]
    answer: str
    annotator: str = ""
    why: str = ""
    label: str = ""


_ANSWERS = {
    "pair": (2, ("same", "different", "skip")),
    "triplet": (3, ("first", "second", "skip")),
    "label": (1, ("keep", "change", "drop")),
}


def _checked(path: Path) -> Path:
    """Return the path of a log; raise OSError, before a question is asked, if no answer can be written there."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to keep {path.name!r} in: make it first.")
    return path


class AnswerLog:
    """Answers on disk, shared by any number of processes and threads.

    Every append holds a lock of the file, reads what others have appended, writes one line and waits until it is on
    disk. A last line that a killed process left incomplete was never acknowledged: the next append removes it.

    Parameters
    ----------
    path : str, path-like or None
        The file, created if it does not exist. None: answers are kept in memory alone.
    data : DataIdentity
        Rows that the answers are about. A log of other rows is refused.
    """

    def __init__(self, path: str | os.PathLike | None, data: DataIdentity) -> None:
        self.path = None if path is None else _checked(Path(path))
        self.data = data
        self._mutex = threading.RLock()
        self._entries: list[Entry] = []
        self._by_id: dict[str, Entry] = {}
        self._end = 0  # bytes read so far
        self._n_lines = 0
        self.refresh()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Entries read so far, in the order of the file."""
        with self._mutex:
            return tuple(self._entries)

    def refresh(self) -> int:
        """Read what other processes have appended; return the number of entries."""
        with self._mutex:
            if self.path is not None and self.path.exists():
                with self.path.open("rb") as file:
                    self._read_complete_lines(file.fileno())
            return len(self._entries)

    def append(self, entry: Entry) -> Entry:
        """Write an entry and return it once it is on disk, or the entry that has its id already."""
        with self.transaction() as write:
            return write(entry)

    @contextmanager
    def transaction(self) -> Iterator[_Writer]:
        """Hold the lock, with `entries` up to date; what it yields writes an entry."""
        with self._mutex:
            if self.path is None:
                yield _Writer(self, None)
                return
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with locked(descriptor):
                    self._check_length(descriptor)
                    self._read_complete_lines(descriptor)
                    self._mend_end(descriptor)
                    if self._end == 0:
                        self._write_header(descriptor)
                    yield _Writer(self, descriptor)
            finally:
                os.close(descriptor)

    def write(self, descriptor: int | None, entry: Entry) -> Entry:
        """Write an entry to the locked file; `transaction` calls this."""
        check_entry(entry, self.data.n_rows)
        known = self._by_id.get(entry.id)
        if known is not None:
            if (known.kind, known.rows, known.answer, known.label) != (
                entry.kind,
                entry.rows,
                entry.answer,
                entry.label,
            ):
                raise ValueError(
                    f"question {entry.id!r} has been answered already, with {known.answer!r}; got {entry.answer!r}. "
                    "Undo that answer first."
                )
            return known
        if descriptor is not None:
            self._write_line(descriptor, {name: value for name, value in asdict(entry).items() if value != ""})
        self._add(entry)
        return entry

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read_complete_lines(self, descriptor: int) -> None:
        os.lseek(descriptor, self._end, os.SEEK_SET)
        while part := _read_all(descriptor):
            complete = part.rfind(b"\n") + 1
            for line in part[:complete].splitlines(keepends=True):
                self._read_line(line)
                self._n_lines += 1
                self._end += len(line)
            if complete < len(part):
                return

    def _read_line(self, line: bytes) -> None:
        values = _parse(line)
        if values is None:
            raise ValueError(
                f"{self.path}, line {self._n_lines + 1}: not a line of an answer log. The file has been changed by "
                "another program; mend or remove this line, or use another log."
            )
        if self._end == 0:
            self._check_header(values)
        else:
            self._add(self._as_entry(values))

    def _as_entry(self, values: Mapping[str, object]) -> Entry:
        try:
            rows = values["rows"]
            entry = Entry(**{**values, "rows": tuple(rows)})  # type: ignore[arg-type]
            check_entry(entry, self.data.n_rows)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{self.path}, line {self._n_lines + 1}: {error}") from None
        return entry

    def _add(self, entry: Entry) -> None:
        if entry.id not in self._by_id:
            self._by_id[entry.id] = entry
            self._entries.append(entry)

    def _check_header(self, values: Mapping[str, object]) -> None:
        if values.get("format") != _FORMAT:
            raise ValueError(f"{self.path} is not a log of answers; pass another path, or a new one.")
        version = values.get("version")
        if not isinstance(version, int) or version > _VERSION:
            raise ValueError(
                f"{self.path} was written by a newer version (format {version}, known is {_VERSION}); update mahalo."
            )
        if values.get("data") != asdict(self.data):
            found = values.get("data")
            n_rows = found.get("n_rows") if isinstance(found, dict) else "unknown"
            raise ValueError(
                f"{self.path} holds answers about other rows ({n_rows}, here {self.data.n_rows}, or other values). "
                "Pass the table that was used before, or another log."
            )

    # -- writing ---------------------------------------------------------------------------------------------------

    def _check_length(self, descriptor: int) -> None:
        """Raise ValueError if the file is shorter than what was read: its header is not there any more."""
        if os.fstat(descriptor).st_size < self._end:
            raise ValueError(
                f"{self.path} was removed or cut short by another program, so that no answer can be added. Put it "
                "back, or start again with another log."
            )

    def _mend_end(self, descriptor: int) -> None:
        """Complete or remove a last line without an end: what a killed process left."""
        os.lseek(descriptor, self._end, os.SEEK_SET)
        rest = _read_all(descriptor)
        if not rest:
            return
        if _parse(rest) is not None:
            _write_all(descriptor, b"\n")
            os.fsync(descriptor)
            self._read_complete_lines(descriptor)
        else:
            os.ftruncate(descriptor, self._end)
            os.fsync(descriptor)

    def _write_header(self, descriptor: int) -> None:
        self._write_line(descriptor, {"format": _FORMAT, "version": _VERSION, "data": asdict(self.data)})
        assert self.path is not None
        if hasattr(os, "O_DIRECTORY"):  # the name of a new file is on disk after this
            folder = os.open(self.path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _write_line(self, descriptor: int, values: Mapping[str, object]) -> None:
        line = json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        _write_all(descriptor, line)
        os.fsync(descriptor)
        self._end += len(line)
        self._n_lines += 1


class _Writer:
    """Function that writes entries to a locked log."""

    def __init__(self, log: AnswerLog, descriptor: int | None) -> None:
        self._log, self._descriptor = log, descriptor

    def __call__(self, entry: Entry) -> Entry:
        """Write an entry and return it, or the one that has its id."""
        return self._log.write(self._descriptor, entry)


def check_entry(entry: Entry, n_rows: int) -> None:
    """Raise ValueError if an entry is not an answer about these rows."""
    texts = (entry.id, entry.kind, entry.answer, entry.annotator, entry.why, entry.label)
    if (
        not all(isinstance(text, str) and len(text) <= _MAX_TEXT and _is_unicode(text) for text in texts)
        or not entry.id
    ):
        raise ValueError(f"id, answer, annotator and label must be texts of at most {_MAX_TEXT:,} Unicode characters.")
    if entry.kind == "undo":
        return
    if entry.kind not in _ANSWERS:
        raise ValueError(f"kind must be 'pair', 'triplet' or 'label'; got {entry.kind!r}.")
    length, answers = _ANSWERS[entry.kind]
    if entry.answer not in answers:
        raise ValueError(f"the answer to a {entry.kind} must be {', '.join(map(repr, answers))}; got {entry.answer!r}.")
    whole = all(isinstance(row, int) and not isinstance(row, bool) and 0 <= row < n_rows for row in entry.rows)
    if not whole or len(entry.rows) != length or len(set(entry.rows)) != length:
        raise ValueError(
            f"a {entry.kind} has {length} different rows, numbers from 0 to {n_rows - 1}; got {list(entry.rows)}."
        )


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which JSON can hold and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse(line: bytes) -> dict[str, object] | None:
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
