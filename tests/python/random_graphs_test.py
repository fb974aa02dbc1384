"""Small graphs drawn at random: every operator of the tables, every type, ranks 0 to 5, empty dimensions, and numbers at the
edges of their types. The program runs each fused and unfused; both agree, and agree with ONNX's reference evaluator or ONNX
Runtime. With --list, every disagreement of the peers is printed, and whose side the program is on.

    python random_graphs_test.py REDFUSER_RUN [COUNT [FIRST_SEED]] [--list FILE] [--device NAME] [--keep FOLDER]
"""

import argparse
import collections
import concurrent.futures
import concurrent.futures.process
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from random_draw import Graph, Rejected, difference
from random_layouts import LAYOUTS
from random_operators import MAKERS

OPERATORS = {**MAKERS, **LAYOUTS}
def drawn(seed):
    """A graph of one to eight nodes; every operator comes first once in as many seeds as there are operators."""
    names, graph = sorted(OPERATORS), Graph(seed)
    wanted = [names[seed % len(names)]] + [graph.one_of(names) for _ in range(graph.rng.integers(0, 8))]
    if graph.wild and graph.chance(0.5):
        wanted = wanted[:1]
    for op in wanted:
        for _ in range(4):
            try:
                with np.errstate(all="ignore"):
                    OPERATORS[op](graph)
                break
            except Rejected:
                continue
    return graph

def write_case(folder, model, feed):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for index, (name, array) in enumerate(feed.items()):
        (folder / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())

def run(program, folder, count, device, *options):
    out = folder / ("out" + "".join(options))
    given = ["--inputs", folder] if any(folder.glob("input_*.pb")) else []
    done = subprocess.run([program, folder / "model.onnx", *given, "--outputs", out, "--threads", "1", "--device", device, *options],
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
    return [numpy_helper.to_array(onnx.TensorProto.FromString((out / f"output_{k}.pb").read_bytes())) for k in range(count)], None

def judge(program, seed, folder, device):
    """The findings, the disputes of the peers with the side that the program is on, and the operators of the graph."""
    graph = drawn(seed)
    operators = [node.op_type for node in graph.nodes]
    if not graph.nodes:
        return [], [], operators
    model, feed = graph.model()
    write_case(folder, model, feed)
    names = [output.name for output in model.graph.output]
    maker = {name: node.op_type for node in graph.nodes for name in node.output}
    fused, failed = run(program, folder, len(names), device)
    plain, refused = run(program, folder, len(names), device, "--no-fuse")
    if failed or refused:
        return [failed or refused], [], operators
    findings, disputes = [], []
    for name, ours, unfused in zip(names, fused, plain):
        apart = difference(ours, unfused)
        if apart:
            findings.append(f"{maker[name]}: fused and unfused: {apart}")
        found = {peer: difference(ours, theirs) for peer, theirs in graph.expected[name].items()}
        wrong = [f"{peer}: {text}" for peer, text in found.items() if text]
        if len(wrong) == len(found):
            findings.append(f"{maker[name]}: {'; '.join(wrong)}")
        elif wrong:
            disputes.append({"operator": maker[name], "with": next(peer for peer, text in found.items() if not text), "against": wrong[0]})
    return findings, disputes, operators

def judged(options):
    """Seeds and what judge() says of them. A peer that crashes takes its process along: those seeds are tried one by one."""
    seeds = list(range(options.first, options.first + options.count))
    for start in range(0, len(seeds), 50):
        chunk = seeds[start:start + 50]
        try:
            results = judge_together(options, chunk)
        except concurrent.futures.process.BrokenProcessPool:
            results = []
            for seed in chunk:
                try:
                    results += judge_together(options, [seed])
                except concurrent.futures.process.BrokenProcessPool:
                    print(f"seed {seed}: a peer crashes")
                    results.append(([], [], []))
        yield from zip(chunk, results)


def judge_together(options, seeds):
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(judge, options.program, seed, pathlib.Path(options.keep or root, str(seed)), options.device) for seed in seeds]
        return [item.result() for item in work]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--list")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    covered, disputes, bad = collections.Counter(), [], 0
    for seed, (findings, disputed, operators) in judged(options):
        covered.update(operators)
        disputes += [{"seed": seed, **dispute} for dispute in disputed]
        if findings:
            bad += 1
            print(f"seed {seed} {' '.join(operators)}\n    " + "\n    ".join(findings))
    if options.list:
        pathlib.Path(options.list).write_text(json.dumps(disputes, indent=1))
    print(f"{len(covered)} operators; the peers disagree on {len(disputes)} results")
    print(f"{options.count - bad} passed, {bad} failed")
    return 1 if bad else 0

if __name__ == "__main__":
    sys.exit(main())
