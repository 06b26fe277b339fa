"""Parts of `Metric.transform` as plain arrays, for programs that apply them without this library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from ..coordinates import KernelCoordinates
from ..features import FeatureMap, LocalMap, QuadraticMap
from ..linalg import to_dense
from .scaling import Scaling

if TYPE_CHECKING:
    from .metric import Metric

KERNELS = ("cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid")
_REMEDY = "write metric.transform(X), or learn with kernel='linear' or 'rbf'"


@dataclass(frozen=True, eq=False)
class KernelColumns:
    """Columns κ0(x, support), one for each support point; the parameters are those of scikit-learn's kernels."""

    name: str
    support: np.ndarray
    gamma: float
    coef0: float
    degree: float


@dataclass(frozen=True, eq=False)
class TransformParts:
    """Parts of a transform in the order of their application; those that are None or False are left out.

    Scaling of columns, features of the scaled columns, similarities to support points, a matrix from the right, unit
    length.
    """

    n_features: int
    scaling: Scaling | None
    features: QuadraticMap | LocalMap | None
    kernel: KernelColumns | None
    matrix: np.ndarray
    normalize: bool

    @property
    def in_single(self) -> bool:
        """True if single precision is enough: a linear map of the rows.

        Coordinates of a kernel, and products of columns, can lose digits that single precision does not have.
        """
        return self.features is None and self.kernel is None


def transform_parts(metric: Metric) -> TransformParts:
    """Return the parts of a metric's transform; raise ValueError if some of it is code or comes from outside."""
    features, c, kernel = _features(metric.features), metric.coordinates, None
    if isinstance(c, KernelCoordinates):
        kernel = _kernel_columns(c)
        matrix = c.T.T @ metric.root
        matrix = matrix if metric.rotation is None else matrix @ metric.rotation
    else:
        matrix = metric.of_validated_rows().linear_map()
    assert metric.n_features is not None
    return TransformParts(metric.n_features, metric.scaling, features, kernel, matrix, metric.normalize)


def _features(features: FeatureMap | None) -> QuadraticMap | LocalMap | None:
    if features is None or isinstance(features, (QuadraticMap, LocalMap)):
        return features
    raise ValueError(
        f"the features of this metric are a {type(getattr(features, 'transformer', features)).__name__}, which cannot "
        "be exported; use features.Quadratic() or features.Local(), or put the transformer before the learner in a "
        "Pipeline and export both."
    )


def _kernel_columns(c: KernelCoordinates) -> KernelColumns:
    if c.is_precomputed:
        raise ValueError(
            f"a metric over a precomputed kernel takes similarities, not vectors, and cannot be exported; {_REMEDY}."
        )
    if not isinstance(c.kernel.kind, str):
        raise ValueError(f"the kernel of this metric is a function, which cannot be exported; {_REMEDY}.")
    if c.kernel.kind not in KERNELS:
        known = ", ".join(KERNELS)
        raise ValueError(f"kernel {c.kernel.kind!r} cannot be exported, only {known}; {_REMEDY}.")
    if c.kernel.shift:
        raise ValueError(
            "a kernel with psd='shift' compares rows for equality and cannot be exported; learn with psd='clip', or "
            f"{_REMEDY}."
        )
    support = np.asarray(to_dense(c.support), dtype=np.float64)
    params = c.kernel.params
    return KernelColumns(
        c.kernel.kind,
        support,
        gamma=_number(params, "gamma", 1.0 / support.shape[1]),
        coef0=_number(params, "coef0", 1.0),
        degree=_number(params, "degree", 3.0),
    )


def _number(params: Mapping[str, object], name: str, default: float) -> float:
    """Return a parameter of a kernel, or what scikit-learn uses if it is None."""
    value = params.get(name)
    return float(value) if isinstance(value, Real) else default
