"""Graphs that tools/bench/drawn draws: the same seed gives the same graphs, and they agree with ONNX Runtime.

    python drawn_test.py build/redfuser-run
"""

import json
import pathlib
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

import case_runner

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench" / "drawn"))
import draw  # noqa: E402

SEED, COUNT, ELEMENTS = 1, 54, 16384
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
# Of a sum of many rounded terms, and of codes that a half quantum apart rounds differently.
TOLERANCES = {"f16": 0.02, "f32": 1e-3}
TIES = ("quantised", "largest", "top")


def feed_of(folder, random):
    """Values for the inputs; writes the weights."""
    graph = json.loads((folder / "graph.json").read_text())
    offsets, feed = dict(graph["weights"]), {}
    weights = bytearray()
    for name, sizes, dtype, values in graph["inputs"]:
        if values == "boolean":
            value = random.random(sizes) > 0.2
            value[..., 0] = True
        elif values.startswith("below"):
            value = random.integers(0, int(values.split()[1]), sizes)
        else:
            terms = np.prod(sizes[1:]) if len(sizes) == 4 else sizes[-2] if values == "weight" else 1
            scale = terms**-0.5 if values == "weight" else 1
            value = (random.standard_normal(sizes) * scale).astype(TYPES[dtype])
        if name in offsets:
            weights[offsets[name]:] = bytes(offsets[name] - len(weights)) + value.tobytes()
        else:
            feed[name] = value
    (folder / "weights.bin").write_bytes(weights)
    return feed


def check(program, name, folder, feed, _):
    model = onnx.load(folder / "model.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    np.savez(folder / "outputs.npz", **dict(zip(names, session.run(None, feed))))
    tolerance = str(TOLERANCES[name.rsplit("_", 1)[1]])
    code, text = case_runner.run_model(program, model, feed, folder, "--compare", folder / "outputs.npz", "--rtol",
                                       tolerance, "--atol", tolerance)
    return f"{name}: {text}" if code else None


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as root:
        first, second = pathlib.Path(root) / "first", pathlib.Path(root) / "second"
        names = draw.draw(first, SEED, COUNT, ELEMENTS)
        if draw.draw(second, SEED, COUNT, ELEMENTS) != names:
            print("the same seed gives other graphs")
            return 1
        for name in names:
            if (first / name / "model.onnx").read_bytes() != (second / name / "model.onnx").read_bytes():
                print(f"{name}: the same seed gives another graph")
                return 1
        random = np.random.default_rng(SEED)
        # ONNX Runtime has few kernels for bfloat16 on a CPU.
        cases = [(program, name, first / name, feed_of(first / name, random)) for name in names
                 if not name.endswith("_bf16") and not any(kind in name for kind in TIES)]
        return case_runner.run_cases(cases, check)


if __name__ == "__main__":
    sys.exit(main())
