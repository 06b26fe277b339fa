"""Rows wherever they are kept: take some, go through all of them in blocks."""

from .held import HeldRows
from .mapped import JoinedRows, MappedRows, combine
from .protocol import Rows

__all__ = ["HeldRows", "JoinedRows", "MappedRows", "Rows", "combine"]
