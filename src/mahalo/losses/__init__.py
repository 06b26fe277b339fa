"""Spectral losses that pull the metric to its prior, and the price of violating a constraint."""

from .check import as_loss, check_loss
from .frobenius import Frobenius
from .logdet import LogDet
from .sdp import SDPFrobenius, SDPLogDet
from .slack import HardSlack, HingeSlack, LogSlack, Slack, SlackStack
from .spectral import Loss, resting_point
from .von_neumann import VonNeumann

__all__ = [
    "Frobenius",
    "HardSlack",
    "HingeSlack",
    "LogDet",
    "LogSlack",
    "Loss",
    "SDPFrobenius",
    "SDPLogDet",
    "Slack",
    "SlackStack",
    "VonNeumann",
    "as_loss",
    "check_loss",
    "resting_point",
]
