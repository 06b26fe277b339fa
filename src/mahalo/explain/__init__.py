"""What a learned metric is made of: features, constraints, doubtful labels, and a record of the fit."""

from .fingerprint import fingerprint
from .mixin import ExplainMixin
from .notes import fit_notes
from .record import fit_record

__all__ = ["ExplainMixin", "fingerprint", "fit_notes", "fit_record"]
