"""Working with pairs: splitting rows so that pairs can be learned from and judged on."""

from .constraints import PairSplit

__all__ = ["PairSplit"]
