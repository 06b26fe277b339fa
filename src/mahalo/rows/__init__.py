"""Rows of data behind one protocol: in memory, mapped through a function, or sampled from a Dask collection."""

from .in_memory import InMemoryRows
from .mapped import JoinedRows, MappedRows, combine
from .nearest_centre import NearestCentre
from .protocol import Rows, VectorRows, is_lazy
from .sampled import Needs, SampledRows
from .sampling import per_class_limit, stratified_sample
