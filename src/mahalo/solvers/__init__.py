"""Solvers of the convex problem; each returns a solution with a certificate."""

from .bregman import bregman
from .certificate import Certificate, certify
from .choice import solve
from .dual import dual
from .farkas import contradiction_error
from .newton import newton
from .problem import Problem
from .result import OnStep, Solution, Step

__all__ = ["Certificate", "Step"]
