"""Problem in, certified solution out."""

from .bregman import bregman
from .certificate import Certificate, certify
from .hard import newton_hard
from .newton import newton
from .problem import Problem
from .result import Solution, Step

__all__ = ["Certificate", "Problem", "Solution", "Step", "bregman", "certify", "newton", "newton_hard"]
