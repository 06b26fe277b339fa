"""Coordinates of rows: linear, in the span of the constraints, in the feature space of a kernel, or over a basis."""

from .base_kernel import BaseKernel, resolve_width
from .embedded import EmbeddedCoordinates, EmbeddedSpace, embedding
from .files import read_coordinates
from .kernel import KernelCoordinates, KernelSpace
from .kernel_geometry import KernelGeometry
from .linear import LinearCoordinates, LinearSpace, orthonormal
from .protocol import Coordinates, PosedCoordinates, Space
from .span import span_of
