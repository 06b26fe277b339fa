"""Rows to r numbers: linear, in the span of the constraints, in the feature space of a kernel, or over a basis."""

from .kernel import BaseKernel, KernelCoordinates, KernelSpace
from .linear import LinearCoordinates, LinearSpace, orthonormal, span_of
from .prior import Prior

__all__ = [
    "BaseKernel",
    "KernelCoordinates",
    "KernelSpace",
    "LinearCoordinates",
    "LinearSpace",
    "Prior",
    "orthonormal",
    "span_of",
]
