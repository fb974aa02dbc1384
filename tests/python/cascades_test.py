"""Plain graphs of cascades in many spellings: the expected regions are found, and ONNX Runtime agrees.

    cascades_test.py REDFUSER_RUN
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(7)
TYPES = {"float32": 1, "float16": 10, "int64": 7, "bool": 9}


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op}:{outputs}", **attributes)


LAST = {"axes": np.array([-1])}
VARIANCE = [node("ReduceMean", "x axes", "m"), node("Sub", "x m", "d"), node("Mul", "d d", "q"), node("ReduceMean", "q axes", "v")]
NORMALISED = VARIANCE + [node("Sqrt", "v", "s"), node("Div", "d s", "y")]
HEADS = {"q": floats(2, 3, 40, 8), "k": floats(2, 3, 50, 8), "v": floats(2, 3, 50, 8)}
SCORES = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s")]
ATTENTION = SCORES + [node("Softmax", "s", "p"), node("MatMul", "p v", "y")]

# name: nodes, inputs, initializers, opset, outputs, regions by class, tolerance
CASES = {
    "softmax over the second of four axes": ([node("Softmax", "x", "y", axis=1)], {"x": floats(2, 7, 5, 3)}, {}, 20, "y", {"row": 1}),
    "softmax with two-dimensional coercion": ([node("Softmax", "x", "y", axis=2)], {"x": floats(2, 7, 5, 3)}, {}, 11, "y", {"row": 1}),
    "layer norm over three axes": ([node("LayerNormalization", "x s b", "y", axis=1)], {"x": floats(2, 7, 5, 3)}, {"s": floats(7, 5, 3), "b": floats(7, 5, 3)}, 20, "y", {"row": 1}),
    "group norm": ([node("GroupNormalization", "x s b", "y", num_groups=3)], {"x": floats(2, 6, 5, 3)}, {"s": floats(6), "b": floats(6)}, 21, "y", {"row": 1}),
    "instance norm": ([node("InstanceNormalization", "x s b", "y")], {"x": floats(2, 6, 5, 3)}, {"s": floats(6), "b": floats(6)}, 20, "y", {"row": 1}),
    "L2 norm by ReduceL2": ([node("ReduceL2", "x axes", "n", keepdims=1), node("Div", "x n", "y")], {"x": floats(4, 9)}, LAST, 20, "y", {"row": 1}),
    "LpNormalization": ([node("LpNormalization", "x", "y", axis=-1, p=2)], {"x": floats(4, 9)}, {}, 20, "y", {"row": 1}),
    "log-softmax": ([node("LogSoftmax", "x", "y")], {"x": floats(4, 9)}, {}, 20, "y", {"row": 1}),
    "log-sum-exp": ([node("ReduceLogSumExp", "x axes", "y")], {"x": floats(4, 9)}, LAST, 20, "y", {"row": 1}),
    "variance": (VARIANCE + [node("Identity", "v", "y")], {"x": floats(4, 9)}, LAST, 18, "y", {"row": 1}),
    "variance down columns": (VARIANCE + [node("Identity", "v", "y")], {"x": floats(400, 9)}, {"axes": np.array([0])}, 18, "y", {"row": 1}),
    "norm over two adjacent axes": (NORMALISED, {"x": floats(4, 9, 6, 5)}, {"axes": np.array([2, 3])}, 18, "y", {"row": 1}),
    "norm over a short axis and long ones": (NORMALISED, {"x": floats(4, 9, 6, 5)}, {"axes": np.array([0, 2, 3])}, 18, "y", {"row": 1}),
    "batch norm in training": ([node("BatchNormalization", "x s b m v", "y n w", training_mode=1)], {"x": floats(3, 4, 6, 5)}, {"s": floats(4), "b": floats(4), "m": floats(4), "v": np.abs(floats(4))}, 15, "y", {"row": 1}),
    "softmax into top-k": ([node("Softmax", "x", "p"), node("TopK", "p k", "y i")], {"x": floats(4, 19)}, {"k": np.array([3])}, 20, "y i", {"row": 1}),
    "gate product, softmax, top-k": ([node("MatMul", "x w", "l"), node("Softmax", "l", "p"), node("TopK", "p k", "y i")], {"x": floats(14, 19)}, {"w": floats(19, 8), "k": np.array([3])}, 20, "y i", {"other": 1}),
    "arg-max of a softmax": ([node("Softmax", "x", "p"), node("ArgMax", "p", "y", axis=-1)], {"x": floats(4, 19)}, {}, 20, "y", {"row": 1}),
    "absmax quantisation": ([node("Abs", "x", "a"), node("ReduceMax", "a axes", "m"), node("Div", "m c", "s"), node("Div", "x s", "z"), node("Round", "z", "r"), node("Cast", "r", "y", to=3)], {"x": floats(4, 19)}, dict(LAST, c=np.float32(127)), 20, "y", {"row": 1}),
    "attention": (ATTENTION, HEADS, {}, 20, "y", {"attention": 1}),
    "attention that publishes its weights": (ATTENTION, HEADS, {}, 20, "y p", {"row": 1}),
    "attention in float16": (ATTENTION, {n: x.astype(np.float16) for n, x in HEADS.items()}, {}, 20, "y", {"attention": 1}, 5e-3),
    "attention by einsum": ([node("Einsum", "q k", "s", equation="bqhd,bkhd->bhqk"), node("Softmax", "s", "p"), node("Einsum", "p v", "y", equation="bhqk,bkhd->bqhd")], {"q": floats(2, 40, 3, 8), "k": floats(2, 50, 3, 8), "v": floats(2, 50, 3, 8)}, {}, 20, "y", {"attention": 1}),
    "attention with keys first": ([node("MatMul", "k qt", "s"), node("Softmax", "s", "p", axis=2), node("Transpose", "p", "pt", perm=[0, 1, 3, 2]), node("MatMul", "pt v", "y")], {"qt": floats(2, 3, 8, 40), "k": floats(2, 3, 50, 8), "v": floats(2, 3, 50, 8)}, {}, 20, "y", {"attention": 1}),
    "Attention-23, causal, soft cap, shared heads": ([node("Attention", "q k v", "y", is_causal=1, softcap=5.0)], {"q": floats(2, 4, 40, 8), "k": floats(2, 2, 40, 8), "v": floats(2, 2, 40, 6)}, {}, 23, "y", {"attention": 1}),
    "Attention-23, boolean mask": ([node("Attention", "q k v m", "y")], {"q": floats(2, 4, 7, 8), "k": floats(2, 2, 40, 8), "v": floats(2, 2, 40, 6), "m": RANDOM.random((2, 1, 7, 40)) > 0.5}, {}, 23, "y", {"attention": 1}),
    "attention with sinks": (SCORES + [node("Expand", "sinks shape", "e"), node("Concat", "s e", "c", axis=-1), node("ReduceMax", "c axes", "m"), node("Sub", "c m", "z"), node("Softmax", "z", "p"), node("Slice", "p zero end axes", "a"), node("MatMul", "a v", "y")], HEADS, dict(LAST, sinks=floats(1, 3, 1, 1), shape=np.array([2, 3, 40, 1]), zero=np.array([0]), end=np.array([-1])), 20, "y", {"attention": 1}),
    "sigmoid attention": (SCORES + [node("Sigmoid", "s", "p"), node("MatMul", "p v", "y")], {"q": floats(1, 2, 300, 8), "k": floats(1, 2, 300, 8), "v": floats(1, 2, 300, 8)}, {}, 20, "y", {"chain": 1}),
    "RMS norm into a product": ([node("Mul", "x x", "z"), node("ReduceMean", "z axes", "m"), node("Sqrt", "m", "s"), node("Div", "x s", "n"), node("MatMul", "n w", "y")], {"x": floats(14, 19)}, dict(LAST, w=floats(19, 8)), 18, "y", {"row": 1}),
    "cross-entropy loss": ([node("SoftmaxCrossEntropyLoss", "x t", "y")], {"x": floats(4, 19), "t": RANDOM.integers(0, 19, 4)}, {}, 20, "y", {"row": 1}),
    "mean absolute deviation: refused": (VARIANCE[:2] + [node("Abs", "d", "q"), node("ReduceMean", "q axes", "y")], {"x": floats(4, 9)}, LAST, 18, "y", None),
}


def check(binary, folder, name, nodes, inputs, initializers, opset, outputs, regions, tolerance=1e-4):
    """The line that says what is wrong, or None."""
    values = [helper.make_tensor_value_info(n, TYPES[str(x.dtype)], x.shape) for n, x in inputs.items()]
    results = [onnx.ValueInfoProto(name=n) for n in outputs.split()]
    weights = [numpy_helper.from_array(np.asarray(x), n) for n, x in initializers.items()]
    graph = helper.make_graph(nodes, "g", values, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    path = lambda file: os.path.join(folder, file)
    onnx.save(model, path("m.onnx"))
    np.savez(path("in.npz"), **inputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path("m.onnx"), options, providers=["CPUExecutionProvider"])
    np.savez(path("out.npz"), **dict(zip(outputs.split(), session.run(None, inputs))))
    run = subprocess.run([binary, path("m.onnx"), "--inputs", path("in.npz"), "--compare", path("out.npz"), "--rtol", str(tolerance),
                          "--atol", str(tolerance), "--explain", path("report.json")], capture_output=True, text=True)
    if run.returncode:
        return f"exit {run.returncode}: {run.stdout[-400:]} {run.stderr}"
    report = json.load(open(path("report.json")))
    if regions is None:
        return None if any("absolute value" in entry["reason"] for entry in report["unfused"]) else "not refused"
    found = dict(collections.Counter(entry["class"] for entry in report["fused"]))
    return None if found == regions else f"regions {found}, expected {regions}; unfused {report['unfused']}"


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            problem = check(sys.argv[1], folder, name, *case)
            print("ok  " if problem is None else "FAIL", name, problem or "")
            failures += problem is not None
    print(f"{len(CASES) - failures} of {len(CASES)} cascades as expected")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
