"""Spectral losses that pull the metric to its prior, and the price of violating a constraint."""

from .logdet import LogDet
from .slack import HardSlack, HingeSlack, LogSlack, Slack, SlackStack

__all__ = ["HardSlack", "HingeSlack", "LogDet", "LogSlack", "Slack", "SlackStack"]
