"""Classification of pairs of rows as same or not, with calibrated probabilities; row splits for pairs."""

from ..constraints import PairSplit
from ..evaluation.pair_scores import calibration_error
from .classifier import PairClassifier, pair_scorer

__all__ = ["PairClassifier", "PairSplit", "calibration_error", "pair_scorer"]
