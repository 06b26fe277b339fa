"""Explanation of a learned metric: features, constraints, doubtful labels, and the provenance of its fit."""

from .diagram import CertificateDiagramMixin
from .fingerprint import fingerprint
from .mixin import ExplainMixin
from .notes import fit_notes
from .provenance import Provenance, provenance_of

__all__ = ["Provenance", "fit_notes"]
