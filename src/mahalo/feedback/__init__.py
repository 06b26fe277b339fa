"""Better searches from documents found relevant: a matrix for queries, while stored vectors stay as they are."""

from .adapter import QueryAdapter
from .certificate import FeedbackCertificate
from .evaluation import FeedbackEvaluation

__all__ = ["FeedbackCertificate", "FeedbackEvaluation", "QueryAdapter"]
