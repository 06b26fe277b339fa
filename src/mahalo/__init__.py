"""Learn a distance from what you know about your data, solved to the optimum and certified."""

from .constraints import Constraints
from .errors import InfeasibleError, NotPositiveDefiniteError
from .learner import MetricLearner
from .metric import Metric
from .persistence import load

__all__ = [
    "Constraints",
    "InfeasibleError",
    "Metric",
    "MetricLearner",
    "NotPositiveDefiniteError",
    "load",
]

__version__ = "0.1.0"
