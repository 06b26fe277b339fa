"""What a learned metric is made of: features, constraints, doubtful labels, and a record of the fit."""

from .fingerprint import fingerprint
from .mixin import ExplainMixin
from .record import fit_record

__all__ = ["ExplainMixin", "fingerprint", "fit_record"]
