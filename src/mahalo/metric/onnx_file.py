"""ONNX files of metrics."""

from __future__ import annotations

import json
from os import PathLike
from typing import TYPE_CHECKING

from ..persistence import write_bytes
from ..version import VERSION
from .onnx_graph import OPSET, build_graph
from .transform_parts import transform_parts

if TYPE_CHECKING:
    from .metric import Metric

INPUT, OUTPUT = "X", "transformed"
_IR_VERSION = 8  # the oldest with this opset, so that older runtimes read it


def write_onnx(metric: Metric, path: str | PathLike) -> None:
    """Write the graph of `transform`, float32 rows to float32 rows, with the names of the columns in its metadata."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise ImportError('writing an ONNX file needs onnx: pip install "mahalo[onnx]"') from None

    parts = transform_parts(metric)
    graph = build_graph(parts, INPUT, OUTPUT)
    nodes = [helper.make_node(node.operator, node.inputs, [node.output]) for node in graph.nodes]
    for node, made in zip(graph.nodes, nodes, strict=True):
        made.attribute.extend(helper.make_attribute(name, value) for name, value in node.attributes.items())
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "metric",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["rows", parts.n_features])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["rows", parts.matrix.shape[1]])],
            [numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="mahalo",
        producer_version=VERSION,
        doc_string=f"{OUTPUT} holds rows of {INPUT} in a space where the learned distance is the Euclidean one.",
    )
    names = metric.column_names
    helper.set_model_props(model, {"distance": "euclidean"} | ({"columns": json.dumps(names)} if names else {}))
    checker.check_model(model, full_check=True)
    write_bytes(path, model.SerializeToString())
