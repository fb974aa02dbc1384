"""The execution provider against ONNX Runtime's own one on the CPU, in one process: the least time of runs in turn.

    python tools/bench/provider.py build/libredfuser_ep.so [--json FILE] [--rounds 15]
"""

import argparse
import json
import os
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import models
from machine import processor

NAME, THREADS = "RedFuserExecutionProvider", 2


def bert(tokens):
    ids = np.random.default_rng(1).integers(0, 30522, (1, tokens))
    mask = (np.arange(tokens)[None] < tokens - tokens // 16).astype(np.int64)
    return models.bert(tokens=tokens), {"input_ids": ids, "attention_mask": mask}


def attention(tokens):
    random = np.random.default_rng(2)
    return models.attention_only(), {name: random.standard_normal((1, 12, tokens, 64)).astype(np.float32) for name in "qkv"}


WORKLOADS = {"bert_base_b1_s128": lambda: bert(128), "bert_base_b1_s512": lambda: bert(512),
             "attention_12x64_2048": lambda: attention(2048)}


def sessions(model, folder):
    """ONNX Runtime's own, and with the provider, which takes every node."""
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    made = []
    for providers in (["CPUExecutionProvider"], [(NAME, {"threads": str(THREADS)})]):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        if len(made) == 1:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        made.append(onnxruntime.InferenceSession(path, options, providers=providers, enable_fallback=False))
    return made


def milliseconds(session, inputs):
    start = time.perf_counter()
    session.run(None, inputs)
    return (time.perf_counter() - start) * 1e3


def measured(workload, rounds):
    model, inputs = workload()
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = sessions(model, folder)
        np.testing.assert_allclose(ours.run(None, inputs)[0], theirs.run(None, inputs)[0], rtol=1e-3, atol=1e-3)
        times = [(milliseconds(theirs, inputs), milliseconds(ours, inputs)) for _ in range(rounds)]
    least = [min(column) for column in zip(*times)]
    return {"onnxruntime_ms": round(least[0], 2), "redfuser_ms": round(least[1], 2), "factor": round(least[0] / least[1], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    onnxruntime.register_execution_provider_library(NAME, os.path.abspath(arguments.library))
    result = {"processor": processor(), "threads": THREADS, "onnxruntime": onnxruntime.__version__,
              **{name: measured(workload, arguments.rounds) for name, workload in WORKLOADS.items()}}
    print(json.dumps(result, indent=2))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
