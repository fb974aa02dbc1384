"""com.microsoft operators: what redfuser-run computes against ONNX Runtime.

    python contrib_test.py REDFUSER_RUN
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

RANDOM = np.random.default_rng(0)
TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
POSITIONS = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]], np.int64)

# Operator, inputs (None: absent), attributes, number of outputs or their names ("": absent).
CASES = [
    ("Gelu", [normal(3, 8)], {}, ["y"]),
    ("BiasGelu", [normal(3, 8), normal(8)], {}, ["y"]),
    ("FastGelu", [normal(3, 8)], {}, ["y"]),
    ("FastGelu", [normal(3, 8), normal(8)], {}, ["y"]),
    ("QuickGelu", [normal(3, 8)], {}, ["y"]),
    ("QuickGelu", [normal(3, 8)], {"alpha": 1.0}, ["y"]),
    ("FusedMatMul", [normal(2, 3, 4), normal(2, 4, 5)], {"alpha": 0.5}, ["y"]),
    ("FusedMatMul", [normal(2, 4, 3), normal(2, 5, 4)], {"transA": 1, "transB": 1}, ["y"]),
    ("FusedMatMul", [normal(2, 3, 4), normal(5, 4)], {"transB": 1}, ["y"]),
    ("SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)], {}, ["y"]),
    ("SkipLayerNormalization",
     [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)], {"epsilon": 1e-3},
     ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)],
     {"epsilon": 1e-5}, ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization",
     [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)], {}, ["y"]),
    ("MultiHeadAttention", [normal(2, 5, 16), normal(2, 7, 16), normal(2, 7, 16)],
     {"num_heads": 4}, ["y"]),
    ("MultiHeadAttention",
     [normal(2, 5, 16), normal(2, 5, 16), normal(2, 5, 16), normal(48), MASK, normal(2, 4, 5, 5)],
     {"num_heads": 4, "scale": 0.3}, ["y"]),
    ("MultiHeadAttention",
     [normal(2, 5, 16), normal(2, 5, 16), normal(2, 5, 16), None, None, None,
      normal(2, 4, 3, 4), normal(2, 4, 3, 4)],
     {"num_heads": 4}, ["y", "present_key", "present_value"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48)], {"num_heads": 4}, ["y"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48), MASK], {"num_heads": 2}, ["y"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48)],
     {"num_heads": 2, "unidirectional": 1}, ["y"]),
    ("RotaryEmbedding", [normal(2, 4, 5, 8), POSITIONS, normal(9, 4), normal(9, 4)], {}, ["y"]),
    ("RotaryEmbedding", [normal(2, 5, 32), POSITIONS, normal(9, 4), normal(9, 4)],
     {"interleaved": 1}, ["y"]),
    ("SimplifiedLayerNormalization", [normal(2, 3, 8), normal(8)], {"epsilon": 1e-5}, ["y"]),
]


def build(op, inputs, attributes, outputs):
    names = ["" if value is None else f"x{k}" for k, value in enumerate(inputs)]
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(name, TYPES[value.dtype.name], value.shape)
             for name, value in zip(names, inputs) if value is not None]
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    feed = {name: value for name, value in zip(names, inputs) if value is not None}
    graph = helper.make_graph([node], "g", infos, results)
    return helper.make_model(graph, opset_imports=imports, ir_version=9), feed


def check(run, case, folder):
    model, feed = build(*case)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "outputs.npz", **dict(zip(names, session.run(None, feed))))
    done = subprocess.run([run, path, "--inputs", folder / "inputs.npz", "--compare",
                           folder / "outputs.npz", "--rtol", "1e-4", "--atol", "1e-5"],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-500:]


def main():
    onnxruntime.set_default_logger_severity(4)
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            problem = check(sys.argv[1], case, pathlib.Path(folder))
            print(f"{case[0]} {case[2]}: {problem or 'ok'}", flush=True)
            problems += problem is not None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
