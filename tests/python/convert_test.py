"""Every example model through redfuser-opt --to: ONNX's checker takes the file with its types,
nothing that fused before is unfused, no float of a product is left wide, and ONNX Runtime and
redfuser-run compute from it what PyTorch computed from the model.

    python convert_test.py REDFUSER_OPT REDFUSER_RUN MODELS_DIR
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import models

# Of the largest magnitude. A bfloat16 has 8 bits of precision where a half has 11.
TOLERANCE = {"fp16": 2e-2, "bf16": 8e-2}
NARROW = {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}
ANGLES = "node_matmul"  # positions times frequencies, in the models with rotary embeddings


def wide_products(path, to):
    """Names of products that compute in fp32. Conv takes no bfloat16 before opset 22."""
    proto = onnx.shape_inference.infer_shapes(onnx.load(path))
    types = {tensor.name: tensor.data_type for tensor in proto.graph.initializer}
    for value in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]:
        types[value.name] = value.type.tensor_type.elem_type
    return [node.name for node in proto.graph.node if node.op_type in ("MatMul", "Gemm", "Conv")
            and types.get(node.output[0]) == onnx.TensorProto.FLOAT
            and not (node.name == ANGLES or (node.op_type == "Conv" and to == "bf16"))]


def largest_error(got, expected):
    return np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()


def check(opt, program, model, to, keep_io, folder):
    written = folder / f"{model.name}.{to}.onnx"
    command = [opt, model / "model.onnx", written, "--to", to, "--emit", "standard"]
    done = subprocess.run(command + ["--keep-io"] * keep_io, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    onnx.checker.check_model(str(written), full_check=True)
    proto = onnx.load(written)
    types = {v.type.tensor_type.elem_type for v in [*proto.graph.input, *proto.graph.output]}
    if (NARROW[to] in types) == keep_io:
        return f"inputs and outputs have the types {types}"
    if wide := wide_products(written, to):
        return f"products in fp32: {wide}"
    known = dict(np.load(model / "inputs.npz"))
    expected = np.load(model / "outputs.npz")["out"]
    tolerance = TOLERANCE[to] * np.abs(expected).max()
    problem = program.run(written, "--inputs", model / "inputs.npz", "--compare",
                          model / "outputs.npz", "--rtol", 0, "--atol", tolerance, "--explain",
                          program.report)
    problem = problem or models.missing(model.name, program.fused_classes())
    if problem or to == "bf16":  # which ONNX Runtime's kernels lack
        return problem
    inputs = {name: value if keep_io or value.dtype.kind != "f" else value.astype(np.float16)
              for name, value in known.items()}
    error = largest_error(models.quiet_session(str(written)).run(None, inputs)[0], expected)
    return None if error < TOLERANCE[to] else f"ONNX Runtime: largest error {error}"


def main():
    opt, folders = sys.argv[1], pathlib.Path(sys.argv[3])
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        program = models.Program(sys.argv[2], folder)
        for model in sorted(p.parent for p in folders.glob("*/model.onnx")):
            for to, keep_io in [("fp16", False), ("fp16", True), ("bf16", False)]:
                problem = check(opt, program, model, to, keep_io, pathlib.Path(folder))
                print(f"{model.name} {to}{' keep-io' * keep_io}: {problem or 'ok'}", flush=True)
                problems += problem is not None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
