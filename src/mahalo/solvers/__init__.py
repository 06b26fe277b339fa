"""Problem in, certified solution out."""

from .bregman import bregman
from .certificate import Certificate, certify
from .choice import solve
from .dual import dual
from .farkas import contradiction
from .newton import newton
from .problem import Problem
from .result import Solution, Step

__all__ = [
    "Certificate",
    "Problem",
    "Solution",
    "Step",
    "bregman",
    "certify",
    "contradiction",
    "dual",
    "newton",
    "solve",
]
