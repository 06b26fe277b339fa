"""Problem in, certified solution out."""

from .certificate import Certificate, certify
from .newton import newton
from .problem import Problem
from .result import Solution, Step

__all__ = ["Certificate", "Problem", "Solution", "Step", "certify", "newton"]
