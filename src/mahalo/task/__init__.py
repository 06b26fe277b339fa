"""One posed task between data and solver."""

from .parameters import check_parameters
from .space import start_metric
from .task import Task

__all__ = ["Task", "check_parameters", "start_metric"]
