"""Base kernels on sets of features, as images are: callables for `MetricLearner(kernel=...)` or whole Gram matrices."""

from .bins import Bins, UniformGrid, VocabularyTree
from .pyramid import PyramidMatch, SpatialPyramidMatch

__all__ = [
    "Bins",
    "PyramidMatch",
    "SpatialPyramidMatch",
    "UniformGrid",
    "VocabularyTree",
]
