"""Rows to r numbers: the prior whitened away, and, where it pays, only the span that the constraints can see."""

from .linear import LinearCoordinates, choose_coordinates
from .prior import Prior

__all__ = ["LinearCoordinates", "Prior", "choose_coordinates"]
