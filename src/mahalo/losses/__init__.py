"""Spectral losses, which keep the metric near its prior, and slack penalties, the price of a violated constraint."""

from .checks import as_loss, check_loss
from .frobenius import Frobenius
from .logdet import LogDet
from .sdp import SDPFrobenius, SDPLogDet
from .slack import HardSlack, HingeSlack, LogSlack, Slack, SlackStack
from .spectral import Loss, resting_point
from .von_neumann import VonNeumann

__all__ = ["Frobenius", "LogDet", "Loss", "SDPFrobenius", "SDPLogDet", "VonNeumann", "check_loss"]
