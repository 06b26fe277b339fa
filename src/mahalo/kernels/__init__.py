"""Base kernels on sets of features, such as images: callables for `MetricLearner(kernel=...)` or Gram matrices."""

from .bins import Bins, UniformGrid, VocabularyTree
from .pyramid import PyramidMatch, SpatialPyramidMatch

__all__ = [
    "Bins",
    "PyramidMatch",
    "SpatialPyramidMatch",
    "UniformGrid",
    "VocabularyTree",
]
