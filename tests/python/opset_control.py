"""Loop, If and Scan as they were written from opset 7 on."""

import numpy as np
from onnx import TensorProto, helper

from opset_forms import Form, Known, f

FLOAT = TensorProto.FLOAT


def value(name, shape=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def branch(op):
    # The outer value is x0, the condition x1... of the If node itself.
    return helper.make_graph([helper.make_node(op, ["x1"], [op])], op, [], [value(op, [3])])


def loop_body():
    nodes = [helper.make_node("Identity", ["go"], ["going"]), helper.make_node("Add", ["v", "v"], ["w"]),
             helper.make_node("Identity", ["w"], ["each"])]
    return helper.make_graph(nodes, "body", [value("n", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [3])],
                             [value("going", [], TensorProto.BOOL), value("w", [3]), value("each", [3])])


def scan_body():
    nodes = [helper.make_node("Add", ["state", "item"], ["next"]), helper.make_node("Identity", ["next"], ["each"])]
    return helper.make_graph(nodes, "body", [value("state", [2]), value("item", [2])], [value("next", [2]), value("each", [2])])


CONTROL = [
    Form("If", [np.array(True), Known(f(3))], {"then_branch": branch("Neg"), "else_branch": branch("Abs")}),
    Form("If", [Known(np.array(False)), f(3)], {"then_branch": branch("Neg"), "else_branch": branch("Abs")}),
    Form("Loop", [Known(np.int64(3)), Known(np.array(True)), f(3)], {"body": loop_body()}, outputs=2),
    Form("Loop", [np.int64(4), np.array(True), f(3)], {"body": loop_body()}, outputs=2),
    Form("Scan", [None, f(2, 2), f(2, 4, 2)], {"body": scan_body(), "num_scan_inputs": 1}, first=8, last=8, outputs=2),
    Form("Scan", [f(2), f(4, 2)], {"body": scan_body(), "num_scan_inputs": 1}, first=9, outputs=2),
    Form("Scan", [f(2), f(2, 4)], {"body": scan_body(), "num_scan_inputs": 1, "scan_input_axes": [1], "scan_input_directions": [1], "scan_output_axes": [1]}, first=9, outputs=2),
    Form("Scan", [f(2), f(2, 4)], {"body": scan_body(), "num_scan_inputs": 1, "scan_input_axes": [-1], "scan_output_directions": [1]}, first=11, outputs=2),
]
