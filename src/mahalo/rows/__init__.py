"""Rows wherever they are kept: take some, go through all of them in blocks."""

from .centres import Centring
from .drawing import even_share, sample
from .held import HeldRows
from .lazy import is_lazy
from .mapped import JoinedRows, MappedRows, combine
from .protocol import Rows
from .sampled import Needs, SampledRows

__all__ = [
    "Centring",
    "HeldRows",
    "JoinedRows",
    "MappedRows",
    "Needs",
    "Rows",
    "SampledRows",
    "combine",
    "even_share",
    "is_lazy",
    "sample",
]
