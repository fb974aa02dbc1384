"""Every example model through redfuser-opt in every form: ONNX's checker takes the file, and ONNX
Runtime computes from it what PyTorch computed from the model.

    python export_test.py REDFUSER_OPT MODELS_DIR
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 2e-5


def run_onnxruntime(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def check(opt, model, form, folder):
    written = folder / f"{model.name}.{form}.onnx"
    done = subprocess.run([opt, model / "model.onnx", written, "--emit", form],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    onnx.checker.check_model(str(written))
    inputs = dict(np.load(model / "inputs.npz"))
    expected = np.load(model / "outputs.npz")["out"]
    error = np.abs(run_onnxruntime(written, inputs) - expected).max()
    if not error < TOLERANCE * max(1.0, np.abs(expected).max()):
        return f"largest error {error}"
    proto = onnx.load(written)
    calls = sum(node.domain == "ai.redfuser" for node in proto.graph.node)
    if form == "function" and calls != len(proto.functions):
        return f"{calls} calls of {len(proto.functions)} functions"
    if form != "function" and len(proto.functions) != 0:
        return f"{len(proto.functions)} functions are left"
    return None


def main():
    opt, models = sys.argv[1], pathlib.Path(sys.argv[2])
    onnxruntime.set_default_logger_severity(3)
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in sorted(p.parent for p in models.glob("*/model.onnx")):
            for form in ["function", "inline", "standard"]:
                problem = check(opt, model, form, pathlib.Path(folder))
                print(f"{model.name} {form}: {problem or 'ok'}", flush=True)
                problems += problem is not None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
