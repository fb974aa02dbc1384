"""ONNX's node and operator tests in ONNX Runtime with the provider.

    python operators_test.py LIBRARY MODELS [PATTERN ...]

A case passes where its outputs are those that the case expects, or those of ONNX Runtime's own provider for
cases that are left to it. Every case is claimed as a whole but for those that left_to_onnxruntime.txt names
with a reason, and "fails" for those that have no session. Cases that ONNX Runtime cannot run itself are passed
over.
"""

import collections
import fnmatch
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from provider import plain_session, session_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from conformance_test import all_cases, compare, is_random, read_value  # noqa: E402

LEFT = pathlib.Path(__file__).resolve().with_name("left_to_onnxruntime.txt")
# The expected values hold rounding of fp32 (tests/conformance_exceptions.txt).
ROUNDED = ["test_dft*", "test_stft*"]


def left_patterns():
    """Of the patterns that hold for this ONNX Runtime: those of cases that are left, those of cases that fail."""
    left, failing = [], []
    for line in LEFT.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words and (len(words) == 1 or onnxruntime.__version__.startswith(words[1])):
            (failing if words[2:] == ["fails"] else left).append(words[0])
    return left, failing


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def with_codes(value):
    """ONNX Runtime gives 8-bit floats as their codes."""
    is_float8 = isinstance(value, np.ndarray) and value.dtype.name.startswith("float8")
    return value.view(np.uint8) if is_float8 else value


def inputs_of(model, session, data):
    names = [value.name for value in model.graph.input]
    wanted = {value.name for value in session.get_inputs()}
    return {value.name: with_codes(read_value(data / f"input_{index}.pb", value.type))
            for index, value in enumerate(model.graph.input) if names[index] in wanted}


def outputs_of(session, model, folders):
    """By folder, with the inputs: ONNX Runtime 1.23 gives sequences whose tensors are in the memory of inputs."""
    fed = {data: inputs_of(model, session, data) for data in folders}
    return {data: session.run(None, fed[data]) for data in folders}, fed


def difference(case, model, data, got):
    tolerances = case[4]
    for index, info in enumerate(model.graph.output):
        file = data / f"output_{index}.pb"
        if not file.exists() or is_random(model):
            continue
        try:
            compare(with_codes(read_value(file, info.type)), got[index], *tolerances)
        except AssertionError as error:
            return " ".join(str(error).split())[:300]
    return None


def run_whole(path):
    """A session in which RedFuser takes every node, or one with ONNX Runtime's provider too."""
    try:
        return session_of(path, {"threads": "1"}, whole=True), True
    except Exception:
        return session_of(path, {"threads": "1"}), False


def own_outputs(path, model, folders):
    """As outputs_of, by ONNX Runtime's own provider; None where it cannot run the case."""
    try:
        return outputs_of(plain_session(path), model, folders)
    except Exception:
        return None


def check(case):
    """A problem or None, and whether RedFuser has taken the whole case; None where ONNX Runtime cannot run it."""
    name, _, path, folders, _ = case
    model = onnx.load(path)
    try:
        session, whole = run_whole(str(path))
        outputs, _fed = outputs_of(session, model, folders)
    except Exception as error:
        passed_over = own_outputs(str(path), model, folders) is None
        return (None, None) if passed_over else (f"{type(error).__name__}: {error}"[:400], False)
    for data in folders:
        problem = difference(case, model, data, outputs[data])
        if not problem:
            continue
        own = own_outputs(str(path), model, folders)
        if own is None or not difference(case, model, data, own[0][data]) or (whole and not matches(name, ROUNDED)):
            return problem, whole
    return None, whole


def main():
    patterns = sys.argv[2:] or ["*"]
    left, failing = left_patterns()
    counts, used, problems = collections.Counter(), set(), []
    for case in all_cases():
        name = case[0]
        if case[1] == "real" or not matches(name, patterns):
            continue
        problem, whole = check(case)
        counts[{None: "passed over", True: "whole", False: "in part"}[whole]] += 1
        if whole is False and not problem and not matches(name, left):
            problem = f"it is not claimed as a whole, and {LEFT.name} does not name it"
        elif problem or whole is False:
            used.update(pattern for pattern in (failing if problem else left) if fnmatch.fnmatchcase(name, pattern))
        if problem and not matches(name, failing):
            problems.append(f"{name}: {problem}")
    if patterns == ["*"]:
        problems += [f"{LEFT.name}: no case needs {pattern}" for pattern in left + failing if pattern not in used]
    print("\n".join(problems))
    print(f"ONNX Runtime {onnxruntime.__version__}: {dict(counts)}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
