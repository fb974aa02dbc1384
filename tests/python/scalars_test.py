"""Elementwise operators of rank 0: the result has rank 0 and ONNX Runtime's value, in a run and in the files that
redfuser-opt writes, run by ONNX Runtime.

    python scalars_test.py REDFUSER_RUN REDFUSER_OPT
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

PLAIN = ("Abs Acos Asin Asinh Atan Ceil Cos Cosh Erf Exp Floor HardSwish Identity Log Mish Neg Reciprocal Relu "
         "Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Atanh").split()
FORMS = [
    *((op, {}) for op in PLAIN), ("Celu", {}), ("Celu", {"alpha": 2.5}), ("Elu", {"alpha": 0.5}),
    ("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("HardSigmoid", {"alpha": 0.3}),
    ("LeakyRelu", {"alpha": 0.2}), ("Selu", {}), ("Shrink", {"lambd": 0.1, "bias": 0.05}),
    ("ThresholdedRelu", {"alpha": 0.1}), ("Cast", {"to": onnx.TensorProto.DOUBLE}),
    ("IsNaN", {}), ("IsInf", {}), ("ReduceSum", {}), ("ReduceMax", {}), ("ReduceMean", {}),
    ("ReduceLogSumExp", {}), ("ReduceL2", {}), ("Dropout", {}), ("Clip", {}),
    ("com.microsoft.Gelu", {}), ("com.microsoft.QuickGelu", {}),
]
WITH_NUMBER = ("Add Sub Mul Div Pow Max Min Sum Mean PRelu Less LessOrEqual Greater GreaterOrEqual Equal "
               "Clip Mod").split()


def build():
    """One model with an output for each form, none of them a function of another."""
    nodes, number = [], numpy_helper.from_array(np.array(0.75, np.float32), "number")

    def add(op, inputs, attributes):
        domain, _, name = op.rpartition(".")
        nodes.append(helper.make_node(name, inputs, [f"y{len(nodes)}"], domain=domain, **attributes,
                                      name=f"{op} {len(nodes)}"))

    for op, attributes in FORMS:
        add(op, ["x"], attributes)
    for op in WITH_NUMBER:
        add(op, ["x", "number"], {"fmod": 1} if op == "Mod" else {})
    add("Where", ["yes", "x", "number"], {})
    yes = numpy_helper.from_array(np.array(True), "yes")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [])],
        [onnx.ValueInfoProto(name=node.output[0]) for node in nodes], [number, yes])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def by_onnxruntime(model, feed):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed)))


def problems_of(model, results, expected, where):
    found = []
    for node in model.graph.node:
        name = node.output[0]
        got, wanted = np.asarray(results[name]), np.asarray(expected[name])
        if got.shape != ():
            found.append(f"{node.name}, {where}: shape {got.shape}")
        elif not np.allclose(got, wanted, rtol=1e-5, atol=1e-6, equal_nan=True):
            found.append(f"{node.name}, {where}: {got}, not {wanted}")
    return found


def main():
    onnxruntime.set_default_logger_severity(4)
    run, opt = sys.argv[1:3]
    model, problems, count = build(), [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        for x in (-0.5, 0.25):
            feed = {"x": np.array(x, np.float32)}
            expected = by_onnxruntime(model, feed)
            np.savez(folder / "inputs.npz", **feed)
            subprocess.run([run, path, "--inputs", folder / "inputs.npz", "--outputs",
                            folder / "outputs.npz"], check=True, capture_output=True)
            with np.load(folder / "outputs.npz") as results:
                problems += problems_of(model, results, expected, f"a run at {x}")
            count += len(model.graph.node)
            for emit in ("function", "inline", "standard"):
                written = folder / f"{emit}.onnx"
                subprocess.run([opt, path, written, "--emit", emit], check=True,
                               capture_output=True)
                results = by_onnxruntime(onnx.load(written), feed)
                problems += problems_of(model, results, expected, f"written as {emit} at {x}")
                count += len(model.graph.node)
    print("\n".join(problems))
    print(f"{count - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
