"""Posed task between data and solver."""

from .sample import check_suits_dask, sample_lazy_rows
from .sample_weight import with_sample_weight
from .settings import FitData, FitSettings
from .space import start_metric
from .task import Task, pose, pose_and_solve, solve_path

__all__ = [
    "FitData",
    "FitSettings",
    "Task",
    "check_suits_dask",
    "pose",
    "pose_and_solve",
    "sample_lazy_rows",
    "solve_path",
    "start_metric",
    "with_sample_weight",
]
