"""Choosing: the whole regularisation path, and cross-validation on it."""

from .cv import MetricLearnerCV
from .path import MetricPath, metric_path

__all__ = ["MetricLearnerCV", "MetricPath", "metric_path"]
