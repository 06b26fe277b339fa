"""Tables on disk: read by suffix, from one file, a glob or a folder of shards; written whole or not at all."""

from .columns import Columns, Encoding, Rows, chosen_columns, encoded, numeric_columns, rows_of
from .named import Classes, read_ids, read_labels
from .reading import Named, Table, read
from .shards import Shards, too_large
from .sides import read_asked, read_constraints
from .writing import Part, check_output, refuse_input, write, write_parts

__all__ = [
    "Classes",
    "Columns",
    "Encoding",
    "Named",
    "Part",
    "Rows",
    "Shards",
    "Table",
    "check_output",
    "chosen_columns",
    "encoded",
    "numeric_columns",
    "read",
    "read_asked",
    "read_constraints",
    "read_ids",
    "read_labels",
    "refuse_input",
    "rows_of",
    "too_large",
    "write",
    "write_parts",
]
