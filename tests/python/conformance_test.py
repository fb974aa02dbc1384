"""ONNX's backend tests (node, simple, pytorch-operator, pytorch-converted and the light models), straight
from the files of the onnx package, through redfuser-run. A case passes when every output has the expected
type and shape and agrees within the case's own tolerances. Random-valued operators are checked by their
distribution. tests/conformance_exceptions.txt names every case that does not pass, with the reason; a case
that fails without being named there, or passes while named, fails the test. With --device cuda, forms that
a GPU has no kernel for may be refused besides; with --device reference, operators that it does not cover.

    python conformance_test.py REDFUSER_RUN [--device cuda|reference] [--report FILE] [PATTERN ...]
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.runner import Runner

KINDS = ["node", "simple", "pytorch-operator", "pytorch-converted", "real"]
EXCEPTIONS = pathlib.Path(__file__).resolve().parent.parent / "conformance_exceptions.txt"
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
RANDOM = {"Bernoulli", "Dropout", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
          "Multinomial"}
TIMEOUT_SECONDS = 300
# An argument of rounding lies 1e-7 below an edge, and its quotient in fp32 on it.
EDGES_OF_FP64 = {"test_dynamicquantizelinear", "test_dynamicquantizelinear_expanded"}


def all_cases():
    """(name, kind, model file, data folders, tolerances) of every case."""
    cases = []
    for kind in KINDS:
        for case in loader.load_model_tests(kind=kind):
            if kind == "real":
                model = LIGHT / pathlib.Path(case.url).name
                folders = [None]
            else:
                folder = pathlib.Path(case.model_dir)
                model = folder / "model.onnx"
                folders = sorted(folder.glob("test_data_set_*"))
            cases.append((case.name, kind, model, folders, (case.rtol, case.atol)))
    return cases


def write_light_data(model_file, folder):
    """The inputs that ONNX's runner gives a light model, and the outputs that the package holds."""
    model = onnx.load(model_file)
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    for index, value in enumerate(inputs):
        data = Runner.generate_dummy_data(value, seed=0, name=value.name, random=False)
        tensor = numpy_helper.from_array(data, value.name)
        (folder / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
    expected = LIGHT / f"{model_file.stem}_output_0.pb"
    (folder / "output_0.pb").write_bytes(expected.read_bytes())


def read_value(path, value_type):
    """The contents of a .pb file: an array, a list, or None for an empty optional."""
    content = path.read_bytes()
    kind = value_type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def is_random(model):
    """True where the outputs are drawn: a random operator without a seed, here or in a function."""
    nodes = list(model.graph.node) + [n for function in model.functions for n in function.node]
    return any(node.op_type in RANDOM for node in nodes)


def check_distribution(expected, got):
    """Random values: the type, the shape, and mean and spread within what their number allows."""
    assert got.dtype == expected.dtype, f"type {got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape}, not {expected.shape}"
    a, b = got.astype(np.float64), expected.astype(np.float64)
    spread = max(a.std(), b.std())
    slack = 6 * spread / np.sqrt(max(a.size, 1)) + 1e-6
    assert abs(a.mean() - b.mean()) <= slack, f"mean {a.mean()}, not {b.mean()}"
    assert abs(a.std() - b.std()) <= slack, f"spread {a.std()}, not {b.std()}"


def compare(expected, got, rtol, atol):
    if isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), "lists of other lengths"
        for left, right in zip(expected, got):
            compare(left, right, rtol, atol)
    elif expected is None or got is None:
        assert expected is None and got is None, "one of the two is an empty optional"
    else:
        Runner.assert_similar_outputs([expected], [got], rtol, atol)


def check_outputs(case, model, data, produced):
    _, _, _, _, (rtol, atol) = case
    random = is_random(model)
    for index, info in enumerate(model.graph.output):
        expected_file = data / f"output_{index}.pb"
        if not expected_file.exists():
            continue
        expected = read_value(expected_file, info.type)
        got = read_value(produced / f"output_{index}.pb", info.type)
        try:
            compare(expected, got, rtol, atol)
        except AssertionError:
            if not random:
                raise
            check_distribution(expected, got)


def run_case(run, case, root, device="cpu"):
    """(outcome, the line that tells about it)."""
    name, kind, model_file, folders, _ = case
    model = onnx.load(model_file)
    for number, data in enumerate(folders):
        produced = root / name / str(number)
        produced.mkdir(parents=True)
        if data is None:
            data = root / name / "data"
            data.mkdir()
            write_light_data(model_file, data)
        command = [run, model_file, "--outputs", produced, "--threads", "1", "--device", device]
        if any(data.glob("input_*.pb")):
            command += ["--inputs", data]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return "timed out", f"after {TIMEOUT_SECONDS} s"
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines()
                     if line.startswith("error")]
            line = re.sub(re.escape(f"{model_file}: "), "", " ".join(lines))[:400]
            if line.endswith("use --device cpu") or "no plan for a GPU" in line:
                return "without a kernel", line
            if "the reference executor does not cover" in line:
                return "not covered", line
            return ("refused" if done.returncode == 2 else f"failed {done.returncode}"), line
        try:
            check_outputs(case, model, data, produced)
        except Exception as error:  # whatever a comparison raises is the case's failure
            return "wrong", " ".join(str(error).split())[:400]
    return "passed", ""


def read_exceptions(file):
    exceptions = {}
    for line in file.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            exceptions[name] = reason
    return exceptions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--device", choices=["cpu", "cuda", "reference"], default="cpu")
    parser.add_argument("--report")
    parser.add_argument("patterns", nargs="*", default=["*"])
    options = parser.parse_args()
    exceptions = read_exceptions(EXCEPTIONS)
    if options.device == "reference":
        exceptions |= {name: "an edge" for name in EDGES_OF_FP64}
    everything = all_cases()
    cases = [case for case in everything
             if any(fnmatch.fnmatch(case[0], pattern) for pattern in options.patterns)]
    outcomes, bad, report = collections.Counter(), 0, []
    with tempfile.TemporaryDirectory() as root:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(
                lambda case: run_case(options.run, case, pathlib.Path(root), options.device), cases)
            for case, (outcome, line) in zip(cases, results):
                outcomes[outcome] += 1
                named = case[0] in exceptions
                if outcome != "passed":
                    report.append(f"{case[0]}\t{case[1]}\t{outcome}\t{line}")
                excused = (outcome in ("without a kernel", "not covered")
                           or (named and options.device != "cpu"))
                if (outcome == "passed") == named and not excused:
                    bad += 1
                    print(f"{case[0]}: {outcome}, but named as an exception" if named
                          else f"{case[0]}: {outcome}: {line}", flush=True)
    if options.report:
        pathlib.Path(options.report).write_text("\n".join(report) + "\n")
    unknown = set(exceptions) - {case[0] for case in everything}
    for name in sorted(unknown):
        print(f"{name}: named as an exception, but no such case")
    print(dict(outcomes))
    print(f"{outcomes['passed']} of {len(cases)}")
    return 1 if bad or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
