"""ONNX operators that compute `Metric.transform`, as plain data: no ONNX library is needed to build them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import DTypeLike

from ..features import LocalMap, QuadraticMap
from .scaling import Scaling
from .transform_parts import KernelColumns, TransformParts

OPSET = 18  # axes of all reductions are inputs from here on
_FLOAT, _DOUBLE = 1, 11  # TensorProto.DataType


@dataclass(frozen=True)
class OnnxNode:
    """An operator with the names of its inputs, and of its one output."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Operators in order, and constant arrays by name."""

    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, np.ndarray]


def build_graph(
    parts: TransformParts,
    source: str,
    result: str,
    *,
    source_dtype: DTypeLike = np.float32,
    result_is_double: bool = False,
    prefix: str = "metric",
) -> OnnxGraph:
    """Return the graph from rows named `source` to transformed rows named `result`, with a free number of rows.

    All other names begin with `prefix`.
    """
    graph = _Builder(prefix, np.float32 if parts.in_single else np.float64)
    x = source if source_dtype == graph.dtype else graph.cast(source, not parts.in_single)
    x = x if parts.scaling is None else _scaled(graph, x, parts.scaling)
    if isinstance(parts.features, QuadraticMap):
        x = _quadratic(graph, x, parts.features)
    elif isinstance(parts.features, LocalMap):
        x = _local(graph, x, parts.features)
    x = x if parts.kernel is None else _similarities(graph, x, parts.kernel)
    x = graph.add("MatMul", x, graph.real(parts.matrix))
    x = _unit_length(graph, x) if parts.normalize else x
    graph.cast(x, result_is_double, result)
    return OnnxGraph(tuple(graph.nodes), graph.constants)


class _Builder:
    """Nodes and constants of a graph while it grows."""

    def __init__(self, prefix: str, dtype: type[np.floating]) -> None:
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, np.ndarray] = {}
        self.dtype = dtype
        self._names = (f"{prefix}_{number}" for number in count(1))

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: int) -> str:
        """Add an operator and return the name of its output."""
        output = next(self._names) if output is None else output
        self.nodes.append(OnnxNode(operator, inputs, output, attributes))
        return output

    def cast(self, x: str, to_double: bool, output: str | None = None) -> str:
        return self.add("Cast", x, output=output, to=_DOUBLE if to_double else _FLOAT)

    def real(self, value: np.ndarray | float) -> str:
        """Return the name of a constant in the precision of the graph."""
        return self._constant(np.asarray(value, dtype=self.dtype))

    def index(self, value: list[int] | np.ndarray) -> str:
        return self._constant(np.asarray(value, dtype=np.int64))

    def _constant(self, array: np.ndarray) -> str:
        name = next(self._names)
        self.constants[name] = array
        return name

    def minus(self, x: str, row: np.ndarray) -> str:
        """Return x − row; in single precision what rounding takes of the row is subtracted too."""
        x = self.add("Sub", x, self.real(row))
        rest = row - row.astype(self.dtype)
        return self.add("Sub", x, self.real(rest)) if rest.any() else x

    def sum(self, x: str, axis: int = 1, keepdims: int = 1) -> str:
        return self.add("ReduceSum", x, self.index([axis]), keepdims=keepdims)

    def unsqueeze(self, x: str, axis: int) -> str:
        return self.add("Unsqueeze", x, self.index([axis]))


def _scaled(graph: _Builder, x: str, scaling: Scaling) -> str:
    return graph.add("Div", graph.minus(x, scaling.mean), graph.real(scaling.scale))


def _unit_length(graph: _Builder, x: str) -> str:
    """Divide rows by their largest entry first, so that squares neither overflow nor vanish; zero rows stay zero."""
    x = _divided(graph, x, graph.add("ReduceMax", graph.add("Abs", x), graph.index([1])))
    return _divided(graph, x, graph.add("Sqrt", graph.sum(graph.add("Mul", x, x))))


def _divided(graph: _Builder, x: str, size: str) -> str:
    positive = graph.add("Greater", size, graph.real(0.0))
    return graph.add("Div", x, graph.add("Where", positive, size, graph.real(1.0)))


def _quadratic(graph: _Builder, x: str, features: QuadraticMap) -> str:
    """Return s (x̃, z_i z_j · weight), z = x̃ or its components."""
    s = features.standardisation
    x = graph.add("Div", graph.minus(x, s.mean), graph.real(s.scale))
    z = x if features.directions is None else graph.add("MatMul", x, graph.real(features.directions))
    i, j, weights = features.products()
    left, right = (graph.add("Gather", z, graph.index(columns), axis=1) for columns in (i, j))
    products = graph.add("Mul", graph.add("Mul", left, right), graph.real(weights))
    return graph.add("Mul", graph.add("Concat", x, products, axis=1), graph.real(s.scale))


def _local(graph: _Builder, x: str, features: LocalMap) -> str:
    """Return s (x̃, √strength r_j x̃); ‖x̃‖² is the same for all regions, so the softmax r does not need it."""
    s, C = features.standardisation, features.centres
    x = graph.add("Div", graph.minus(x, s.mean), graph.real(s.scale))
    near = graph.add("MatMul", x, graph.real(2.0 / features.width * C.T))
    near = graph.add("Sub", near, graph.real((C**2).sum(axis=1) / features.width))
    r = graph.add("Mul", graph.add("Softmax", near, axis=1), graph.real(np.sqrt(features.strength)))
    regions = graph.add("Mul", graph.unsqueeze(r, 2), graph.unsqueeze(x, 1))
    regions = graph.add("Reshape", regions, graph.index([0, C.size]))
    return graph.add("Mul", graph.add("Concat", x, regions, axis=1), graph.real(s.scale))


def _similarities(graph: _Builder, x: str, kernel: KernelColumns) -> str:
    support = kernel.support
    if kernel.name == "laplacian":
        differences = graph.add("Sub", graph.unsqueeze(x, 1), graph.real(support))
        size = graph.sum(graph.add("Abs", differences), axis=2, keepdims=0)
        return graph.add("Exp", graph.add("Mul", size, graph.real(-kernel.gamma)))
    if kernel.name == "rbf":
        centre = support.mean(axis=0)
        x, support = graph.minus(x, centre), support - centre
        products = graph.add("MatMul", x, graph.real(-2.0 * support.T))
        own = graph.add("Add", graph.sum(graph.add("Mul", x, x)), graph.real((support**2).sum(axis=1)))
        size = graph.add("Max", graph.add("Add", own, products), graph.real(0.0))
        return graph.add("Exp", graph.add("Mul", size, graph.real(-kernel.gamma)))
    if kernel.name == "cosine":
        length = np.linalg.norm(support, axis=1, keepdims=True)
        return graph.add("MatMul", _unit_length(graph, x), graph.real((support / np.where(length > 0, length, 1.0)).T))
    if kernel.name == "linear":
        return graph.add("MatMul", x, graph.real(support.T))
    products = graph.add("MatMul", x, graph.real(kernel.gamma * support.T))
    products = graph.add("Add", products, graph.real(kernel.coef0))
    if kernel.name == "sigmoid":
        return graph.add("Tanh", products)
    return graph.add("Pow", products, graph.real(kernel.degree))
