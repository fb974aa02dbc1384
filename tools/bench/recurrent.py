"""Recurrent layers on the CPU against ONNX Runtime, in turns, with two threads each.

    python tools/bench/recurrent.py build/redfuser-run [--json FILE] [--rounds 5] [--only TEXT]

Of each layer: the median over the rounds of each side's median microseconds, and the median of their ratios.
"""

import argparse
import json
import os
import statistics
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cpu

GATES = {"LSTM": 4, "GRU": 3, "DynamicQuantizeLSTM": 4}


def normal(random, *shape):
    return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def quantized(weights):
    """Columns of int8 with a scale for each, as DynamicQuantizeLSTM takes them."""
    scale = np.abs(weights).max(-1) / 127
    return np.round(weights / scale[..., None]).astype(np.int8).transpose(0, 2, 1), scale


def layer(op, steps, batch, inputs, hidden, directions, linear):
    random = np.random.default_rng(1)
    gates = GATES[op]
    weights = [normal(random, directions, gates * hidden, depth) for depth in (inputs, hidden)]
    bias = normal(random, directions, 2 * gates * hidden)
    attributes = {"hidden_size": hidden, "direction": ["forward", "bidirectional"][directions - 1]}
    arrays, outputs, domain = {"w": weights[0], "r": weights[1], "b": bias}, ["y"], ""
    names = ["x", "w", "r", "b"]
    if op == "GRU":
        attributes["linear_before_reset"] = linear
    if op == "DynamicQuantizeLSTM":
        domain = "com.microsoft"
        for key in "wr":
            arrays[key], arrays[key + "_scale"] = quantized(arrays[key])
            arrays[key + "_zero"] = np.zeros(arrays[key + "_scale"].shape, np.int8)
        names += ["", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, directions, batch, hidden])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    imports = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return model, random.standard_normal((steps, batch, inputs)).astype(np.float32)


def layers():
    for op, batch, directions, linear in [
            ("LSTM", 1, 1, 0), ("LSTM", 1, 2, 0), ("LSTM", 8, 1, 0), ("GRU", 1, 1, 0), ("GRU", 1, 2, 1), ("GRU", 8, 1, 1),
            ("DynamicQuantizeLSTM", 1, 1, 0), ("DynamicQuantizeLSTM", 1, 2, 0), ("DynamicQuantizeLSTM", 8, 1, 0)]:
        for steps in (1, 32, 200):
            for width in (64, 128, 256, 512):
                yield op, steps, batch, width, width, directions, linear


def compare(binary, folder, case, rounds):
    path, feed = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    model, x = layer(*case)
    onnx.save(model, path)
    np.savez(feed, x=x)
    _, steps, batch, inputs, hidden, directions, _ = case
    work = steps * batch * hidden * (inputs + hidden) * directions
    iterations = int(np.clip(2e9 / work, 20, 3000))
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(cpu.onnx_runtime(path, feed, iterations)[0] * 1e3)
        ours.append(cpu.redfuser(binary, path, feed, iterations)["time"]["wall_ms"]["median"] * 1e3)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    return {"redfuser_us": statistics.median(ours), "onnxruntime_us": statistics.median(theirs), "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in layers():
            op, steps, batch, _, hidden, directions, linear = case
            name = f"{op}{'_linear' if linear else ''} b{batch} t{steps} h{hidden} d{directions}"
            if arguments.only not in name:
                continue
            rows[name] = compare(arguments.binary, folder, case, arguments.rounds)
            print(name, " ".join(f"{value:.2f}" for value in rows[name].values()), flush=True)
    if arguments.json:
        result = {"processor": cpu.processor(), "threads": 2, "rows": rows}
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
