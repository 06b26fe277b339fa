"""Which few directions to learn in: the bases of the paper, as combinations R = XᵀJ of rows or as vectors."""

from .between import BetweenBasis
from .clusters import ClassBasis, KernelKMeans, KMeansBasis, SpectralBasis
from .common import Basis, as_basis
from .simple import RandomCombination, RandomSubset, SingularVectors

__all__ = [
    "Basis",
    "BetweenBasis",
    "ClassBasis",
    "KMeansBasis",
    "KernelKMeans",
    "RandomCombination",
    "RandomSubset",
    "SingularVectors",
    "SpectralBasis",
    "as_basis",
]
