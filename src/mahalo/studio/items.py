"""Items: what a person sees of a row, its name, its fields and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_MAX_PICTURE = 20_000_000  # bytes
_MAX_FIELDS = 60
_MAX_FIELD = 20_000  # characters of a text that are shown
_MAX_SHORT = 200


@dataclass(frozen=True)
class Field:
    """A value of a row: the name of its column, the text, and the number of characters that are not shown."""

    name: str
    text: str
    n_hidden: int


@dataclass(frozen=True)
class Item:
    """A row as it is shown."""

    row: int
    id: str
    fields: tuple[Field, ...]
    has_picture: bool


@dataclass(frozen=True)
class Picture:
    """A raster picture: its bytes and their media type."""

    data: bytes
    media_type: str


@dataclass(frozen=True, eq=False)
class Items:
    """Rows as people see them.

    Attributes
    ----------
    n_rows : int
    ids : sequence of str or None
        Names of the rows; their numbers if None.
    columns : mapping
        Name to the values of a column, None for missing ones.
    labels : sequence of str or None
        Label of each row, "" for none.
    folder : Path or None
        Folder of the table, in which pictures are looked for.
    id_name, label_name : str
        Names of the columns of ids and labels, which are not among `columns`.
    """

    n_rows: int
    ids: Sequence[str] | None = None
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    labels: Sequence[str] | None = None
    folder: Path | None = None
    id_name: str = "id"
    label_name: str = "label"

    def id_of(self, row: int) -> str:
        """Return the name of a row, its number if it has none."""
        return str(row) if self.ids is None else str(self.ids[row])

    @property
    def picture_column(self) -> str | None:
        """Name of the first column whose first values name raster files; None if there is none."""
        if self.folder is None:
            return None
        for name, values in self.columns.items():
            first = [value for value in values[:20] if value is not None]
            if first and all(isinstance(v, str) and v.lower().endswith(_SUFFIXES) for v in first):
                return name
        return None

    def item(self, row: int) -> Item:
        """Return a row as it is shown."""
        self._check(row)
        picture = self.picture_column
        shown = [(name, values) for name, values in self.columns.items() if name != picture][:_MAX_FIELDS]
        fields = tuple(_as_field(name, values[row]) for name, values in shown)
        return Item(row, self.id_of(row), fields, picture is not None)

    def summary(self, row: int) -> str:
        """Return the start of a row's texts in one line, to recognise it by."""
        self._check(row)
        texts = [values[row] for values in self.columns.values() if isinstance(values[row], str)]
        line = " ".join(" · ".join(str(text) for text in texts).split())
        return line if len(line) <= _MAX_SHORT else f"{line[:_MAX_SHORT]}…"

    def find(self, text: str, limit: int = 20) -> list[int]:
        """Return the rows whose name or text contains a text, those whose name is the text first."""
        wanted = text.casefold().strip()
        if not wanted:
            return []
        exact = [row for row in range(self.n_rows) if self.id_of(row).casefold() == wanted]
        found = dict.fromkeys(exact[:limit])
        for row in range(self.n_rows):
            if len(found) >= limit:
                break
            if wanted in self.id_of(row).casefold() or any(
                isinstance(values[row], str) and wanted in str(values[row]).casefold()
                for values in self.columns.values()
            ):
                found.setdefault(row)
        return list(found)

    def picture(self, row: int) -> Picture | None:
        """Return the picture of a row; None if it has none.

        Only a raster file inside the folder of the table is read, after symbolic links are followed.
        """
        self._check(row)
        column = self.picture_column
        value = None if column is None else self.columns[column][row]
        if self.folder is None or not isinstance(value, str) or "\0" in value:
            return None
        folder = self.folder.resolve()
        try:
            path = (folder / value).resolve(strict=True)
            if not path.is_relative_to(folder) or not path.is_file() or path.suffix.lower() not in _SUFFIXES:
                return None
            if path.stat().st_size > _MAX_PICTURE:
                return None
            data = path.read_bytes()
        except (OSError, ValueError):
            return None
        media_type = _media_type(data)
        return None if media_type is None else Picture(data, media_type)

    def _check(self, row: int) -> None:
        if not 0 <= row < self.n_rows:
            raise ValueError(f"row must be a number from 0 to {self.n_rows - 1}; got {row}.")


def _as_field(name: str, value: object) -> Field:
    if value is None:
        return Field(name, "", 0)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return Field(name, text[:_MAX_FIELD], max(0, len(text) - _MAX_FIELD))


def _media_type(data: bytes) -> str | None:
    """Return the media type of a raster picture by its first bytes; None for anything else."""
    for start, media_type in (
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"BM", "image/bmp"),
    ):
        if data.startswith(start):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
