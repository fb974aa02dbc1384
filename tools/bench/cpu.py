"""CPU figures: BERT-base against ONNX Runtime in one run, and long attention fused against unfused.

    python tools/bench/cpu.py build/redfuser-run [--json FILE] [--rounds 3]
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import models
from machine import processor


def redfuser(binary, model, inputs, iterations, *options):
    """Median milliseconds, peak bytes of tensors and of the process, of one redfuser-run."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [binary, model, "--inputs", inputs, "--threads", "2", "--warmup", "1",
                   "--iterations", str(iterations), "--json", report.name, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.load(open(report.name))


def onnx_runtime(model, inputs, iterations):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = dict(np.load(inputs))
    session.run(None, feeds)
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        out = session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), out[0]


def bert(binary, folder, rounds):
    model, inputs = os.path.join(folder, "bert.onnx"), os.path.join(folder, "bert.npz")
    onnx.save(models.bert(), model)
    random = np.random.default_rng(1)
    ids = random.integers(0, 30522, (1, 512))
    np.savez(inputs, input_ids=ids, attention_mask=(np.arange(512)[None] < 480).astype(np.int64))
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(onnx_runtime(model, inputs, 5)[0])
        ours.append(redfuser(binary, model, inputs, 5)["time"]["wall_ms"]["median"])
    reference = onnx_runtime(model, inputs, 1)[1]
    expected = os.path.join(folder, "expected.npz")
    np.savez(expected, out=reference)
    subprocess.run([binary, model, "--inputs", inputs, "--compare", expected, "--rtol", "1e-3",
                    "--atol", "1e-3"], check=True, stdout=subprocess.DEVNULL)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    return {"redfuser_ms": ours, "onnxruntime_ms": theirs, "ratio": ours / theirs}


def attention(binary, folder, tokens):
    model, inputs = os.path.join(folder, "attention.onnx"), os.path.join(folder, "attention.npz")
    onnx.save(models.attention_only(), model)
    random = np.random.default_rng(2)
    shape = (1, 12, tokens, 64)
    np.savez(inputs, **{n: random.standard_normal(shape).astype(np.float32) for n in "qkv"})
    fused = redfuser(binary, model, inputs, 3)
    unfused = redfuser(binary, model, inputs, 3, "--no-fuse")
    return {"fused_ms": fused["time"]["wall_ms"]["median"], "unfused_ms": unfused["time"]["wall_ms"]["median"],
            "speedup": unfused["time"]["wall_ms"]["median"] / fused["time"]["wall_ms"]["median"],
            "fused_bytes": fused["peak_tensor_bytes"], "unfused_bytes": unfused["peak_tensor_bytes"],
            "memory_ratio": fused["peak_tensor_bytes"] / unfused["peak_tensor_bytes"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=8192)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {"processor": processor(), "threads": 2, "onnxruntime": onnxruntime.__version__,
                  "bert_base_b1_s512": bert(arguments.binary, folder, arguments.rounds),
                  f"attention_12x64_{arguments.tokens}": attention(arguments.binary, folder, arguments.tokens)}
    print(json.dumps(result, indent=2))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
