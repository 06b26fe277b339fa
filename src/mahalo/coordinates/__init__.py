"""Rows to r numbers: linear, in the span of the constraints, in the feature space of a kernel, or over a basis."""

from .base_kernel import BaseKernel
from .kernel import KernelCoordinates, KernelSpace
from .linear import LinearCoordinates, LinearSpace, orthonormal
from .span import span_of

__all__ = [
    "BaseKernel",
    "KernelCoordinates",
    "KernelSpace",
    "LinearCoordinates",
    "LinearSpace",
    "orthonormal",
    "span_of",
]
