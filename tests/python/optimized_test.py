"""The example models as ONNX Runtime's optimizer and quantizer rewrite them, into its own operators: the
optimized ones give PyTorch's outputs and fuse like the originals, the quantized ones give ONNX Runtime's outputs.

    python optimized_test.py REDFUSER_RUN MODELS_FOLDER
"""

import collections
import logging
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from models import EXPECTED, Program, missing, quiet_session


def optimize(source, target):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def quantize_8_bits(source, target):
    """Dynamically quantized products, then the optimizer, which has operators for them."""
    whole = target.with_suffix(".whole.onnx")
    quantize_dynamic(str(source), str(whole), weight_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"])
    optimize(whole, target)


def own_operators(path):
    """How many nodes of each operator of com.microsoft the model has."""
    return collections.Counter(node.op_type for node in onnx.load(path).graph.node if node.domain == "com.microsoft")


def check_optimized(name, program, source, folder):
    target = folder / "optimized.onnx"
    optimize(source / "model.onnx", target)
    problem, regions = program.compare_fused(target, source / "inputs.npz", source / "outputs.npz")
    return problem or missing(name, regions), own_operators(target)


def check_quantized(program, source, folder):
    target, outputs = folder / "quantized.onnx", folder / "outputs.npz"
    quantize_8_bits(source / "model.onnx", target)
    session = quiet_session(str(target))
    names = [output.name for output in session.get_outputs()]
    np.savez(outputs, **dict(zip(names, session.run(None, dict(np.load(source / "inputs.npz"))))))
    return program.compare(target, source / "inputs.npz", outputs), own_operators(target)


def main():
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(4)
    problems = 0
    for name in EXPECTED:
        source = pathlib.Path(sys.argv[2]) / name
        with tempfile.TemporaryDirectory() as folder:
            program, folder = Program(sys.argv[1], folder), pathlib.Path(folder)
            results = {"optimized": check_optimized(name, program, source, folder),
                       "8 bits": check_quantized(program, source, folder)}
        for kind, (problem, operators) in results.items():
            print(f"{name}, {kind}: {problem or 'ok'} {dict(operators)}", flush=True)
            problems += problem is not None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
