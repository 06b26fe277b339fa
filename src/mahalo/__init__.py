"""Learn a distance from what you know about your data, solved to the optimum and certified."""

from .constraints import Constraints
from .errors import InfeasibleError, NotPositiveDefiniteError
from .learner import MetricLearner
from .metric import Metric, load
from .selection import MetricLearnerCV, MetricPath, metric_path

__all__ = [
    "Constraints",
    "InfeasibleError",
    "Metric",
    "MetricLearner",
    "MetricLearnerCV",
    "MetricPath",
    "NotPositiveDefiniteError",
    "load",
    "metric_path",
]

__version__ = "0.1.0"
