"""Requests per second of a served model beside one direct session, with and without batches: of rounds in turn the best one,
where other programs disturb least, and the median.

    tools/serve.sh tools/bench/serve.py [--json FILE] [--rounds 3] [--seconds 10]

Clients, server and session share the machine's cores. Every answer is compared with the session's.
"""

import argparse
import concurrent.futures
import json
import logging
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import ray
import tritonclient.grpc
import tritonclient.http

import redfuser

import machine
import models

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "python"))
import serve_server  # noqa: E402

CLIENTS, ROWS, WAIT_MS = 64, 16, 50
# Models by name: layers, width, heads, hidden width, tokens, vocabulary of models.bert.
MODELS = {"bert_tiny_t32": (2, 64, 4, 128, 32, 512), "bert_base_t16": (12, 768, 12, 3072, 16, 30522)}


def inputs_of(name, rows=1):
    ids = np.random.default_rng(rows).integers(0, 512, [rows, MODELS[name][4]])
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def write_models(folder):
    """Each under its name, and as NAME_batched with the option."""
    for name, sizes in MODELS.items():
        for path in (folder / name, folder / f"{name}_batched"):
            path.mkdir(parents=True)
            onnx.save(models.bert(*sizes), path / "model.onnx")
        (path / "redfuser.toml").write_text(f"[batching]\nmax_rows = {ROWS}\nwait_ms = {WAIT_MS}\n")


def direct(session, inputs, seconds):
    """Rows per second."""
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        session.run(inputs)
        count += len(inputs["input_ids"])
    return {"per_s": count / seconds}


def served(server, kind, model, arrays, seconds, wanted):
    """Answers per second to the clients, each of which sends one row and waits, and the median time of one. The
    seconds begin when every client has had an answer."""
    port = server.http if kind is tritonclient.http else server.grpc
    inputs = serve_server.tensors(arrays, kind)
    options = {"network_timeout": 120} if kind is tritonclient.http else {}
    warm, answers = threading.Barrier(CLIENTS), []

    def run(_):
        client = kind.InferenceServerClient(f"127.0.0.1:{port}", **options)
        client.infer(model, inputs)
        warm.wait()
        begin = began = time.perf_counter()
        while began < begin + seconds:
            found = client.infer(model, inputs).as_numpy("out")
            answered = time.perf_counter()
            if answered < begin + seconds:
                answers.append(answered - began)
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
            began = answered

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(run, range(CLIENTS)))
    return {"per_s": len(answers) / seconds, "median_ms": statistics.median(answers) * 1e3}


def measured(server, seconds):
    """One round: workload -> figures."""
    results = {}
    for name in MODELS:
        session = redfuser.Session(server.folder / name / "model.onnx", device="cpu")
        one = inputs_of(name)
        wanted = np.array(session.run(one)["out"])
        for rows in (1, ROWS):
            results[f"{name} direct rows={rows}"] = direct(session, inputs_of(name, rows), seconds)
        for transport, kind in (("rest", tritonclient.http), ("grpc", tritonclient.grpc)):
            for model in (name, f"{name}_batched"):
                results[f"{model} {transport}"] = served(server, kind, model, one, seconds, wanted)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="redfuser-serve-bench-") as temporary:
        folder = pathlib.Path(temporary, "models")
        write_models(folder)
        server = serve_server.Server(folder)
        try:
            rounds = [measured(server, arguments.seconds) for _ in range(arguments.rounds)]
        finally:
            server.close()
    result = {"processor": machine.processor(), "cores": os.cpu_count(), "clients": CLIENTS, "max_rows": ROWS, "wait_ms": WAIT_MS, "ray": ray.__version__, "rounds": arguments.rounds}
    for name, figures in rounds[0].items():
        result[name] = {}
        for field in figures:
            found = [each[name][field] for each in rounds]
            best = max(found) if field == "per_s" else min(found)
            result[name][field] = {"best": round(best, 2), "median": round(statistics.median(found), 2)}
        print(name, result[name])
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
