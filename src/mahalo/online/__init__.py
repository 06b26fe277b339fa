"""Learning from a stream: one step a pair, with a bound on regret, and a proof when it is asked for."""

from .learner import OnlineMetricLearner
from .stream import Passed

__all__ = ["OnlineMetricLearner", "Passed"]
