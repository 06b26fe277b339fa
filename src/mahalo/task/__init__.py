"""One posed task between data and solver."""

from .space import start_metric
from .task import Task

__all__ = ["Task", "start_metric"]
