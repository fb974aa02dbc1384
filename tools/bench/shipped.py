"""ONNX files that Python packages ship (tests/python/shipped_models.py) beside ONNX Runtime: medians of runs in turn.

    python tools/bench/shipped.py build/redfuser-run [--json FILE] [--rounds 5] [--only PART_OF_A_NAME]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

import cpu

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))
import shipped_models  # noqa: E402

TIME_MS = 300  # of one program in one round


def inputs_of(path, shipped, folder):
    """Files with inputs of the first sizes and ONNX Runtime's outputs."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = shipped_models.draw(session, shipped, shipped.sizes[0])
    outputs = dict(zip((each.name for each in session.get_outputs()), session.run(None, feed)))
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "outputs.npz", **outputs)
    return folder / "inputs.npz", folder / "outputs.npz"


def timed(binary, path, inputs, rounds):
    first, _ = cpu.onnx_runtime(path, inputs, 5)
    iterations = max(5, min(2000, int(TIME_MS / first)))
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(cpu.onnx_runtime(path, inputs, iterations)[0])
        ours.append(cpu.redfuser(binary, path, inputs, iterations)["time"]["wall_ms"]["median"])
    ratio = statistics.median(our / their for our, their in zip(ours, theirs))
    return {"redfuser_ms": statistics.median(ours), "onnxruntime_ms": statistics.median(theirs), "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    result = {"processor": cpu.processor(), "threads": 2, "onnxruntime": onnxruntime.__version__,
              "packages": [f"{package.name} {package.version}" for package in shipped_models.PACKAGES]}
    with tempfile.TemporaryDirectory() as folder:
        for path, shipped in shipped_models.files():
            name = os.path.relpath(path, shipped_models.CACHE)
            if arguments.only not in name:
                continue
            inputs, outputs = inputs_of(path, shipped, pathlib.Path(folder))
            subprocess.run([arguments.binary, path, "--inputs", inputs, "--compare", outputs, "--rtol", "1e-3", "--atol",
                            str(shipped.error)], check=True, stdout=subprocess.DEVNULL)
            result[name] = timed(arguments.binary, str(path), str(inputs), arguments.rounds)
            print(f"{name:74} {result[name]['redfuser_ms']:8.3f} ms  {result[name]['ratio']:.2f} of ONNX Runtime's",
                  flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
