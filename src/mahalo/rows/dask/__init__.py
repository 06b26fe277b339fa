"""Rows in Dask arrays and dataframes, which may be larger than memory; the only room that imports Dask."""

from .metric_operations import map_pairs, map_rows, nearest_rows, pairwise_table
from .passes import DaskRows
from .pieces import merge_pieces, read_in_pieces

__all__ = ["DaskRows", "map_pairs", "map_rows", "merge_pieces", "nearest_rows", "pairwise_table", "read_in_pieces"]
