"""Tables on disk: read by suffix, from one file, a glob or a folder of shards; written whole or not at all."""

from .columns import Columns, Encoding, Rows, chosen_columns, encoded, rows_of
from .named import read_ids, read_labels
from .reading import Table, read
from .sides import read_constraints
from .writing import check_output, write

__all__ = [
    "Columns",
    "Encoding",
    "Rows",
    "Table",
    "check_output",
    "chosen_columns",
    "encoded",
    "read",
    "read_constraints",
    "read_ids",
    "read_labels",
    "rows_of",
    "write",
]
