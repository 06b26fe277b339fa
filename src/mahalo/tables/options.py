"""Options that name the files of a dataset and the columns in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
    encoding : str
        Encoding of .csv, .tsv and .txt files.
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
    encoding: str = "utf-8"

    @property
    def inputs(self) -> list[str | None]:
        """Paths of all files that are read, None for options that are absent."""
        return [*self.data, self.labels, self.ids, self.pairs, self.triplets]
