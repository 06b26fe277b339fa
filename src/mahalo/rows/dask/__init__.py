"""Rows on Dask: arrays, frames and, through them, files larger than memory. All that knows of Dask is here."""

from .answers import map_pairs, map_rows, nearest_rows, table_of
from .passes import DaskRows

__all__ = ["DaskRows", "map_pairs", "map_rows", "nearest_rows", "table_of"]
