"""Bases of few directions to learn in, as combinations R = XᵀJ of rows or as vectors."""

from .base import Basis, as_basis
from .between_class import BetweenBasis
from .clusters import ClassBasis, KernelKMeans, KMeansBasis, SpectralBasis
from .elementary import Landmarks, RandomCombination, RandomSubset, SingularVectors

__all__ = [
    "BetweenBasis",
    "ClassBasis",
    "KMeansBasis",
    "KernelKMeans",
    "Landmarks",
    "RandomCombination",
    "RandomSubset",
    "SingularVectors",
    "SpectralBasis",
]
