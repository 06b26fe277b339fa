"""`Metric.transform` as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..features import LocalMap, QuadraticMap
from .transform_parts import KernelColumns, transform_parts

if TYPE_CHECKING:
    from .metric import Metric


class MetricModule(nn.Module):
    """Rows to rows in a space where the learned distance is the Euclidean one; constants are buffers.

    A linear metric works in single precision, others in double; the result has the precision of the rows.
    """

    def __init__(self, columns: list[nn.Module], matrix: np.ndarray, normalize: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.columns = nn.Sequential(*columns)
        self.register_buffer("matrix", _buffer(matrix))
        self.normalize = normalize
        self.to(dtype)

    def forward(self, X: Tensor) -> Tensor:
        Z = self.columns(X.to(self.matrix.dtype)) @ self.matrix
        Z = _at_unit_length(Z) if self.normalize else Z
        return Z.to(X.dtype) if X.is_floating_point() else Z


def as_module(metric: Metric) -> MetricModule:
    """Return the transform of a metric as a module; raise ValueError if some of it is code."""
    parts = transform_parts(metric)
    dtype = torch.float32 if parts.in_single else torch.float64
    columns: list[nn.Module] = []
    if parts.scaling is not None:
        columns.append(_Standardised(parts.scaling.mean, parts.scaling.scale, dtype))
    if isinstance(parts.features, QuadraticMap):
        columns.append(_Quadratic(parts.features, dtype))
    elif isinstance(parts.features, LocalMap):
        columns.append(_Local(parts.features, dtype))
    if parts.kernel is not None:
        columns.append(_Similarities(parts.kernel))
    return MetricModule(columns, parts.matrix, parts.normalize, dtype)


def _buffer(array: np.ndarray) -> Tensor:
    return torch.tensor(np.ascontiguousarray(array), dtype=torch.float64)


class _Standardised(nn.Module):
    """(x − mean) / scale; what rounding takes of the mean is subtracted too."""

    def __init__(self, mean: np.ndarray, scale: np.ndarray | float, dtype: torch.dtype) -> None:
        super().__init__()
        whole = _buffer(mean).to(dtype)
        self.register_buffer("mean", whole)
        self.register_buffer("rest", _buffer(mean) - whole.to(torch.float64))
        self.register_buffer("scale", _buffer(np.asarray(scale)))

    def forward(self, X: Tensor) -> Tensor:
        return (X - self.mean - self.rest) / self.scale


class _Quadratic(nn.Module):
    """s (x̃, z_i z_j · weight), z = x̃ or its components."""

    def __init__(self, features: QuadraticMap, dtype: torch.dtype) -> None:
        super().__init__()
        s = features.standardisation
        self.standardised = _Standardised(s.mean, s.scale, dtype)
        directions = np.eye(len(s.mean)) if features.directions is None else features.directions
        i, j, weights = features.products()
        self.register_buffer("directions", _buffer(directions))
        self.register_buffer("i", torch.tensor(i))
        self.register_buffer("j", torch.tensor(j))
        self.register_buffer("weights", _buffer(weights))

    def forward(self, X: Tensor) -> Tensor:
        x = self.standardised(X)
        z = x @ self.directions
        products = z[:, self.i] * z[:, self.j] * self.weights
        return torch.cat([x, products], dim=1) * self.standardised.scale


class _Local(nn.Module):
    """s (x̃, √strength r_j x̃), r the softmax of −‖x̃ − c_j‖² / width."""

    def __init__(self, features: LocalMap, dtype: torch.dtype) -> None:
        super().__init__()
        s, C = features.standardisation, features.centres
        self.standardised = _Standardised(s.mean, s.scale, dtype)
        self.register_buffer("slopes", _buffer(2.0 / features.width * C.T))
        self.register_buffer("offsets", _buffer((C**2).sum(axis=1) / features.width))
        self.root_strength = float(np.sqrt(features.strength))

    def forward(self, X: Tensor) -> Tensor:
        x = self.standardised(X)
        r = self.root_strength * torch.softmax(x @ self.slopes - self.offsets, dim=1)
        regions = (r.unsqueeze(2) * x.unsqueeze(1)).flatten(1)
        return torch.cat([x, regions], dim=1) * self.standardised.scale


class _Similarities(nn.Module):
    """κ0(x, support) of a kernel of scikit-learn's."""

    def __init__(self, kernel: KernelColumns) -> None:
        super().__init__()
        self.name = kernel.name
        self.gamma, self.coef0, self.degree = kernel.gamma, kernel.coef0, kernel.degree
        self.register_buffer("support", _buffer(kernel.support))
        self.register_buffer("centre", _buffer(kernel.support.mean(axis=0)))

    def forward(self, X: Tensor) -> Tensor:
        if self.name == "laplacian":
            return torch.exp(-self.gamma * torch.cdist(X, self.support, p=1.0))
        if self.name == "rbf":
            x, y = X - self.centre, self.support - self.centre
            size = (x * x).sum(dim=1, keepdim=True) + (y * y).sum(dim=1) - 2.0 * (x @ y.t())
            return torch.exp(-self.gamma * size.clamp(min=0.0))
        if self.name == "cosine":
            return _at_unit_length(X) @ _at_unit_length(self.support).t()
        products = X @ self.support.t()
        if self.name == "linear":
            return products
        products = self.gamma * products + self.coef0
        return torch.tanh(products) if self.name == "sigmoid" else torch.pow(products, self.degree)


def _at_unit_length(X: Tensor) -> Tensor:
    """Divide rows by their largest entry first, so that squares neither overflow nor vanish."""
    size = X.abs().amax(dim=1, keepdim=True)
    X = X / torch.where(size > 0, size, torch.ones_like(size))
    length = (X * X).sum(dim=1, keepdim=True).sqrt()
    return X / torch.where(length > 0, length, torch.ones_like(length))
