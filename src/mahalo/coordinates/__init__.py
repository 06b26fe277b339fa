"""Rows to r numbers: linear, in the span of the constraints, in the feature space of a kernel, or over a basis."""

from .base_kernel import BaseKernel
from .embedded import EmbeddedCoordinates, EmbeddedSpace, embedding
from .kernel import KernelCoordinates, KernelSpace
from .linear import LinearCoordinates, LinearSpace, orthonormal
from .span import span_of

__all__ = [
    "BaseKernel",
    "EmbeddedCoordinates",
    "EmbeddedSpace",
    "KernelCoordinates",
    "KernelSpace",
    "LinearCoordinates",
    "LinearSpace",
    "embedding",
    "orthonormal",
    "span_of",
]
