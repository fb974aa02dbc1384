"""ONNX's backend tests with every dimension of every input made a symbol of its own, so that shape rules
and kernels work without sizes. A case that passes with its sizes must pass without them;
tests/symbolic_exceptions.txt names those that do not, with the reason.

    python symbolic_test.py REDFUSER_RUN [PATTERN ...]
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import sys
import tempfile

import onnx

import conformance_test as conformance

EXCEPTIONS = pathlib.Path(__file__).resolve().parent.parent / "symbolic_exceptions.txt"


def forget_sizes(model):
    """Input dimensions become symbols; outputs and values in between lose their shapes."""
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    changed = False
    for number, value in enumerate(graph.input):
        if value.name in constants or not value.type.HasField("tensor_type"):
            continue
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"d{number}_{axis}"
            changed = True
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    return changed


def run_case(run, case, root):
    name, kind, model_file, folders, tolerances = case
    model = onnx.load(model_file)
    if kind == "real" or not forget_sizes(model):
        return "without sizes", ""
    folder = root / f"model_{name}"
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    return conformance.run_case(run, (name, kind, folder / "model.onnx", folders, tolerances), root)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("patterns", nargs="*", default=["*"])
    options = parser.parse_args()
    exceptions = conformance.read_exceptions(EXCEPTIONS)
    fixed = conformance.read_exceptions(conformance.EXCEPTIONS)
    cases = [case for case in conformance.all_cases()
             if any(fnmatch.fnmatch(case[0], pattern) for pattern in options.patterns)]
    outcomes, bad = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda case: run_case(options.run, case, root), cases)
            for case, (outcome, line) in zip(cases, results):
                outcomes[outcome] += 1
                fine = outcome in ("passed", "without sizes") or case[0] in fixed
                if fine != (case[0] not in exceptions):
                    bad += 1
                    print(f"{case[0]}: {outcome}: {line}", flush=True)
    print(dict(outcomes))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
