"""Options that name the files of a dataset and the columns in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class TextFormat:
    """Conventions of text files that the files do not state.

    Attributes
    ----------
    encoding : str
        Encoding of .csv, .tsv and .txt files.
    separator : str, optional
        Character between columns of these files. Default: a comma, in .tsv a tab.
    json_lines : bool
        Standard input, and files whose names end in no known suffix, are JSON lines.
    """

    encoding: str = "utf-8"
    separator: str | None = None
    json_lines: bool = False


DEFAULT_FORMAT = TextFormat()


def parse_separator(name: str | None) -> str | None:
    """Return the character of `--sep`, given as itself or by its name; raise ValueError for anything else."""
    if name is None:
        return None
    found = _SEPARATORS.get(name, name)
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in '\r\n"':
        raise ValueError(
            f"--sep {name!r} does not separate columns; wanted one character that is no letter, digit or quote, or "
            f"{', '.join(_SEPARATORS)}."
        )
    return found


def separator_name(separator: str) -> str:
    """Return the name of a separator, or itself if it has none."""
    return next((name for name, one in _SEPARATORS.items() if one == separator), separator)


@dataclass(frozen=True)
class RowOptions:
    """Files of rows, their columns, and files of labels, ids and constraints.

    Attributes
    ----------
    data : sequence of str
        Paths, folders and globs of the rows.
    label, labels : str, optional
        Column of the classes, or a file with one class for each row.
    id, ids : str, optional
        Column of the row names, or a file with one name for each row.
    columns, drop, one_hot, text : sequence of str
        Columns to learn from alone, to leave out, to turn into a 0/1 column for each value, and to encode as texts;
        an entry may hold several names separated by commas.
    encoder : str, optional
        Folder of the model that encodes texts. Default: wordllama.
    pairs, triplets : str, optional
        Files of pairs and triplets of rows.
    impute : str, optional
        "mean", "median" or "knn" to fill missing numbers; by default they are refused.
    encoding, sep, json_lines
        See `TextFormat`; `sep` may be the name of a character.
    """

    data: Sequence[str] = ()
    label: str | None = None
    labels: str | None = None
    id: str | None = None
    ids: str | None = None
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    encoder: str | None = None
    one_hot: Sequence[str] = ()
    pairs: str | None = None
    triplets: str | None = None
    impute: str | None = None
    encoding: str = "utf-8"
    sep: str | None = None
    json_lines: bool = False

    @property
    def text_format(self) -> TextFormat:
        """Conventions of all text files."""
        return TextFormat(self.encoding, parse_separator(self.sep), self.json_lines)

    @property
    def inputs(self) -> list[str | None]:
        """Paths of all files that are read, None for options that are absent."""
        return [*self.data, self.labels, self.ids, self.pairs, self.triplets]
