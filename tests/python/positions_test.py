"""Positions that are data, such as the indices of a Gather: legal ones give what ONNX Runtime gives, any other ends the
run with an error that names the node, the position and the size. The positions are an input of the model, computed
from one in passing, computed by a kernel of its own, or known only to a model that is evaluated node by node.

    python positions_test.py REDFUSER_RUN [OPERATOR]
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import position_cases
from case_runner import run_cases, run_model

WAYS = ("given", "in passing", "by a kernel", "node by node")


def source(way, positions):
    """The input that holds the positions, and nodes that make `positions` of it."""
    if way == "in passing":
        return positions, [helper.make_node("Add", ["given", "three"], ["moved"]),
                           helper.make_node("Sub", ["moved", "three"], ["positions"])]
    if way == "by a kernel":
        return positions.reshape(1, -1), [
            helper.make_node("CumSum", ["given", "axis"], ["summed"]),
            helper.make_node("Reshape", ["summed", "shape"], ["positions"])]
    return positions, [helper.make_node("Identity", ["given"], ["positions"])]


def build(case, way, positions, fixed=False):
    """The model and its inputs, whose dimensions are symbols unless they are to be `fixed`."""
    given, nodes = source(way, positions)
    names = ["" if value is None else "positions" if k == case.at else f"x{k}"
             for k, value in enumerate(case.inputs)]
    feed = {name: value for name, value in zip(names, case.inputs) if name not in ("", "positions")}
    feed["given"] = given
    infos = []
    for name, value in feed.items():
        shape = value.shape if fixed else [f"{name}_{d}" for d in range(value.ndim)]
        if way == "node by node" and name == names[1 if case.at == 0 else 0]:
            shape = None
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(name, dtype, shape))
    weights = [numpy_helper.from_array(np.array(3, positions.dtype), "three"),
               numpy_helper.from_array(np.array(0), "axis"),
               numpy_helper.from_array(np.array(positions.shape, np.int64), "shape")]
    outputs = [f"y{k}" for k in range(case.count)]
    nodes.append(helper.make_node(case.op, names, outputs, name="the node", domain=case.domain,
                                  **case.attributes))
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=outputs[0])], weights)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3),
               helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9), feed


def check_legal(program, case, way, folder):
    peer, feed = build(case, "given", case.inputs[case.at], fixed=True)
    session = onnxruntime.InferenceSession(peer.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    np.savez(folder / "outputs.npz", y0=session.run(["y0"], feed)[0])
    model, feed = build(case, way, case.inputs[case.at])
    code, said = run_model(program, model, feed, folder, "--compare", folder / "outputs.npz",
                           "--rtol", "1e-4", "--atol", "1e-5")
    return None if code == 0 else f"exit {code}: {said}"


def check_refused(program, case, way, bad, folder):
    positions = case.inputs[case.at].copy()
    if not np.iinfo(positions.dtype).min <= bad <= np.iinfo(positions.dtype).max:
        return None
    positions.flat[0] = bad
    code, said = run_model(program, *build(case, way, positions), folder)
    good = code == 2 and all(part in said for part in ('"the node"', f" {bad} ", str(case.size)))
    return None if good else f"{bad}: exit {code}: {said}"


def main():
    onnxruntime.set_default_logger_severity(4)
    program, wanted = sys.argv[1], sys.argv[2:]

    def check(case, way, bad, folder):
        problem = (check_legal(program, case, way, folder) if bad is None
                   else check_refused(program, case, way, bad, folder))
        return problem and f"{case.op} {case.attributes}, positions {way}: {problem}"

    return run_cases([(case, way, bad) for case in position_cases.CASES for way in WAYS
                      for bad in (None, *case.bad) if not wanted or case.op in wanted], check)


if __name__ == "__main__":
    sys.exit(main())
