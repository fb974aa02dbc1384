"""Shape rules of a dimension that is known only at run time, at 0, 1, 2 and odd sizes: a model with a symbol must give
what the same model gives with the number, and what ONNX Runtime (or, where it has no answer, ONNX's reference) gives.
What both peers refuse, both models must refuse or answer alike.

    python sizes_test.py REDFUSER_RUN [NAME]
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import size_cases
from case_runner import run_cases, run_model

SIZES = (0, 1, 2, 5)


def build(graph, n, symbolic):
    sizes = {name: [n if dim == "n" else dim for dim in shape]
             for name, shape in graph.shapes.items()}
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT,
                                            graph.shapes[name] if symbolic else sizes[name])
              for name in graph.shapes]
    outputs = [onnx.ValueInfoProto(name=name) for name in graph.outputs]
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    proto = helper.make_graph(graph.nodes, "g", inputs, outputs, constants)
    feed = {name: np.random.default_rng(n).standard_normal(shape).astype(np.float32)
            for name, shape in sizes.items()}
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), feed


def by_onnxruntime(model, feed):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def by_reference(model, feed):
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feed)


def answers(model, feed):
    """What the peers give; they differ on the mean of nothing."""
    found = []
    for peer in (by_onnxruntime, by_reference):
        try:
            found.append([np.asarray(result) for result in peer(model, feed)])
        except Exception:
            pass
    return found


def run(program, model, feed, folder):
    """The exit code, the end of what was printed, and the outputs in order."""
    folder.mkdir()
    code, said = run_model(program, model, feed, folder, "--outputs", folder / "outputs.npz")
    results = []
    if code == 0:
        with np.load(folder / "outputs.npz") as outputs:
            results = [outputs[output.name] for output in model.graph.output]
    return code, said, results


def agree(got, wanted):
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    return np.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


def difference(graph, results, peers):
    for k, (name, got) in enumerate(zip(graph.outputs, results)):
        if not any(agree(got, peer[k]) for peer in peers):
            return f"{name} is {got.dtype}{got.shape} {got.tolist()}, not {peers[0][k].tolist()}"[:300]
    return None


def check(program, name, graph, n, folder):
    """What is wrong; None if nothing is."""
    symbolic, feed = build(graph, n, True)
    constant, _ = build(graph, n, False)
    peers = [] if n in graph.refused else answers(constant, feed)
    codes = {}
    for kind, model in (("symbol", symbolic), ("number", constant)):
        code, said, results = run(program, model, feed, folder / kind)
        codes[kind] = code
        where = f"{name} at {n}, {kind}"
        if n in graph.refused:
            if code != 2 or f'node "{graph.nodes[-1].name}"' not in said:
                return f"{where}: exit {code}: {said}"
        elif code == 0 and peers:
            problem = difference(graph, results, peers)
            if problem:
                return f"{where}: {problem}"
        elif code != 2 and code != 0 or peers and not graph.may_refuse:
            return f"{where}: exit {code}: {said}"
    if codes["symbol"] != codes["number"]:
        return f"{name} at {n}: exit {codes['symbol']} with a symbol, {codes['number']} without"
    return None


def main():
    onnxruntime.set_default_logger_severity(4)
    program, wanted = sys.argv[1], sys.argv[2:]
    return run_cases([(program, name, graph, n) for name, graph in size_cases.CASES for n in SIZES
                      if not wanted or name in wanted], check)


if __name__ == "__main__":
    sys.exit(main())
