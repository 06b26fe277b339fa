"""Feature maps g(x) ⊗ x: metrics that vary with place are linear metrics over such columns."""

from .base import FeatureMap, Features, FeaturesLike, UserFeatures, check_features, fit_features
from .files import FEATURE_KINDS, read_features
from .local import Local, LocalMap
from .quadratic import Quadratic, QuadraticMap

__all__ = ["Local", "Quadratic"]
