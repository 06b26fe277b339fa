"""One posed task between data and solver."""

from .sampled import sampled
from .space import start_metric
from .task import Task

__all__ = ["Task", "sampled", "start_metric"]
