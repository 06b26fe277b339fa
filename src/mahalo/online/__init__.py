"""Metric learning from a stream: one update per pair, a bound on the regret, and a certificate on request."""

from .learner import OnlineMetricLearner
from .stream import StreamStats

__all__ = ["OnlineMetricLearner", "StreamStats"]
