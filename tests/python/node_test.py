"""ONNX's own operator tests through redfuser-run. A case passes when the outputs agree, or when
redfuser-run refuses the model with a message; a wrong result or a failure of ours does not.

    python node_test.py REDFUSER_RUN
"""

import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node as node_cases

# Fewer passing cases than this mean that operators were lost.
AT_LEAST = 1000
USER_ERROR = 2


def write_case(case, folder):
    """Writes the model and its first data set; False for inputs that are no tensors."""
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    folder.mkdir()
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for kind, values, infos in [("input", inputs, graph.input), ("output", outputs, graph.output)]:
        for index, (value, info) in enumerate(zip(values, infos)):
            if isinstance(value, onnx.TensorProto):
                tensor = value
            elif hasattr(value, "dtype") and info.type.HasField("tensor_type"):
                tensor = numpy_helper.from_array(value)
            else:
                return False
            tensor.name = info.name
            (folder / f"{kind}_{index}.pb").write_bytes(tensor.SerializeToString())
    return True


def run_case(run, folder):
    """The outcome, and the line that tells about it."""
    try:
        done = subprocess.run([run, folder / "model.onnx", "--inputs", folder, "--compare", folder,
                               "--rtol", "1e-3", "--atol", "1e-5", "--threads", "1"],
                              capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "timed out", ""
    if done.returncode == 0:
        return "passed", ""
    lines = (done.stdout + done.stderr).splitlines()
    wrong = [line for line in lines if line.startswith(("error", "compare"))]
    refused = done.returncode == USER_ERROR
    return "refused" if refused else "failed", " ".join(wrong)[:300]


def main():
    run = sys.argv[1]
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as root:
        folders = []
        for case in node_cases.collect_testcases(None):
            folder = pathlib.Path(root) / case.name
            if case.data_sets and write_case(case, folder):
                folders.append(folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for folder, (outcome, line) in zip(folders, pool.map(lambda f: run_case(run, f), folders)):
                outcomes[outcome] += 1
                if outcome not in ("passed", "refused"):
                    print(f"{folder.name}: {outcome}: {line}")
    print(dict(outcomes))
    bad = sum(count for name, count in outcomes.items() if name not in ("passed", "refused"))
    return 1 if bad or outcomes["passed"] < AT_LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
