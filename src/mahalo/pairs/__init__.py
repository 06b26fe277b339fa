"""Working with pairs: same or not, with a probability; splits of rows that pairs can be learned from and judged on."""

from ..constraints import PairSplit
from .classifier import PairClassifier
from .judging import calibration_error, pair_scorer

__all__ = ["PairClassifier", "PairSplit", "calibration_error", "pair_scorer"]
