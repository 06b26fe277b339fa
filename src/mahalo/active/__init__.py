"""Which pairs to ask people about: those whose answer the metric is unsure of, and that no answer so far implies."""

from .choosing import next_pairs
from .implied import Implied

__all__ = ["Implied", "next_pairs"]
