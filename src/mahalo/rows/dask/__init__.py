"""Rows on Dask: arrays, frames and, through them, files larger than memory. All that knows of Dask is here."""

from .answers import map_pairs, map_rows, nearest_rows, table_of
from .passes import DaskRows
from .pieces import merged_over, read_in_pieces

__all__ = ["DaskRows", "map_pairs", "map_rows", "merged_over", "nearest_rows", "read_in_pieces", "table_of"]
