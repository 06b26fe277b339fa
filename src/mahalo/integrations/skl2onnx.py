"""skl2onnx: pipelines with learners of this library as ONNX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..embeddings import EmbeddingAdapter
from ..learner import MetricLearner
from ..metric.onnx_graph import OPSET, build_graph
from ..metric.transform_parts import transform_parts
from ..selection import MetricLearnerCV

try:
    from onnx import helper, numpy_helper
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
except ImportError:
    raise ImportError('converting pipelines needs skl2onnx: pip install "mahalo[onnx]"') from None

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope

__all__ = ["register_converters"]

_LEARNERS = (MetricLearner, MetricLearnerCV, EmbeddingAdapter)


def register_converters() -> None:
    """Let `skl2onnx.to_onnx` convert MetricLearner, MetricLearnerCV and EmbeddingAdapter, alone or in a pipeline.

    The converted step is `transform`, in double precision if its input is (float32 for `EmbeddingAdapter`). It needs
    ``target_opset`` 18 or later.
    """
    for learner in _LEARNERS:
        update_registered_converter(learner, f"Mahalo{learner.__name__}", _set_output_type, _convert)


def _result_is_double(operator: Operator) -> bool:
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return is_double and not isinstance(operator.raw_operator, EmbeddingAdapter)


def _set_output_type(operator: Operator) -> None:
    (rows,) = operator.inputs
    kind = DoubleTensorType if _result_is_double(operator) else FloatTensorType
    operator.outputs[0].type = kind([rows.get_first_dimension(), operator.raw_operator.metric_.n_outputs])


def _convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    if container.target_opset < OPSET:
        raise ValueError(
            f"a learned metric needs target_opset {OPSET} or later; got {container.target_opset}. Pass "
            f"target_opset={OPSET}."
        )
    (rows,), (result,) = operator.inputs, operator.outputs
    dtypes = {DoubleTensorType: np.float64, FloatTensorType: np.float32}
    graph = build_graph(
        transform_parts(operator.raw_operator.metric_),
        rows.full_name,
        result.full_name,
        source_dtype=dtypes.get(type(rows.type), np.int64),
        result_is_double=_result_is_double(operator),
        prefix=f"{scope.get_unique_variable_name('mahalo_metric')}_part",
    )
    for name, array in graph.constants.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        container.add_initializer(name, kind, list(array.shape), numpy_helper.from_array(array, name))
    for node in graph.nodes:
        container.add_node(
            node.operator,
            list(node.inputs),
            [node.output],
            op_version=container.target_opset,
            name=scope.get_unique_operator_name(f"mahalo_{node.operator}"),
            **node.attributes,
        )
