"""Spectral losses that pull the metric to its prior, and the price of violating a constraint."""

from .logdet import LogDet
from .slack import HardSlack, HingeSlack, LogSlack, SlackStack

__all__ = ["HardSlack", "HingeSlack", "LogDet", "LogSlack", "SlackStack"]
