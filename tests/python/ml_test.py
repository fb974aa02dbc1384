"""Operators of ai.onnx.ml: what redfuser-run computes against ONNX Runtime, and what it refuses.

    python ml_test.py REDFUSER_RUN [OPERATOR ...]
"""

import pathlib
import subprocess
import sys
import tempfile

import ml_cases
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

FAMILIES = [ml_cases.features, ml_cases.texts, ml_cases.linear, ml_cases.machines, ml_cases.regressors,
            ml_cases.classifiers, ml_cases.pools]
BARE = {"GlobalLpPool", "MaxRoiPool"}  # operators of ai.onnx
MICROSOFT = {"MurmurHash3", "Tokenizer"}
PAIRS = {"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"}


def attribute_of(value):
    return numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value


def dtype_of(array):
    return (onnx.TensorProto.STRING if array.dtype == object
            else helper.np_dtype_to_tensor_dtype(array.dtype))


def build(op, inputs, attributes, version=1):
    if any(name.endswith("_as_tensor") for name in attributes):
        version = max(version, 3)
    names = [f"x{k}" for k in range(len(inputs))]
    outputs = ["y", "z"] if op in PAIRS else ["y"]
    kept = {name: attribute_of(value) for name, value in attributes.items()
            if isinstance(value, (np.ndarray, str, int, float)) or len(value) > 0}
    domain = "" if op in BARE else "com.microsoft" if op in MICROSOFT else "ai.onnx.ml"
    node = helper.make_node(op, names, outputs, "the node",
                            domain=domain, **kept)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(name, dtype_of(x), x.shape)
                      for name, x in zip(names, inputs)],
        [onnx.ValueInfoProto(name=name) for name in outputs])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version),
              helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), dict(zip(names, inputs))


def run(program, model, feed, folder):
    """(exit code, what it printed, outputs by name)."""
    data, produced = folder / "data", folder / "produced"
    for path in (data, produced):
        path.mkdir(exist_ok=True)
        for old in path.iterdir():
            old.unlink()
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for index, (name, array) in enumerate(feed.items()):
        tensor = numpy_helper.from_array(array, name)
        (data / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
    done = subprocess.run([program, folder / "model.onnx", "--inputs", data, "--outputs", produced],
                          capture_output=True, text=True, timeout=120)
    results = {}
    for index, output in enumerate(model.graph.output):
        path = produced / f"output_{index}.pb"
        if path.exists():
            tensor = onnx.TensorProto.FromString(path.read_bytes())
            results[output.name] = numpy_helper.to_array(tensor)
    return done.returncode, done.stdout + done.stderr, results


def difference(name, got, expected, atol):
    """What is wrong with an output; None if nothing is."""
    if got.dtype == object or expected.dtype == object:
        decode = np.vectorize(lambda text: text.decode() if isinstance(text, bytes) else text,
                              otypes=[object])
        same = got.shape == expected.shape and (decode(got) == decode(expected)).all()
        return None if same else f"{name}: {got.tolist()}, not {expected.tolist()}"
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{name}: {got.dtype}{got.shape}, not {expected.dtype}{expected.shape}"
    if np.allclose(got, expected, rtol=1e-4, atol=atol, equal_nan=True):
        return None
    return f"{name}: {got.tolist()}, not {expected.tolist()}"


def plain(output, attributes):
    """An output as an array; a list of maps with a column per class."""
    if not isinstance(output, list):
        return np.asarray(output)
    classes = attributes.get("classlabels_strings") or attributes["classlabels_int64s"]
    return np.array([[row[name] for name in classes] for row in output], np.float32)


def peer(op, inputs, attributes):
    """ONNX Runtime's outputs by name. It takes the ensembles of version 3, which 5 deprecates."""
    model, feed = build(op, inputs, attributes)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
    except Exception as error:
        # It has no kernel for every type that ONNX lists; the values are exact as floats.
        if "Could not find an implementation" not in str(error) or inputs[0].dtype == np.float32:
            raise
        return peer(op, [x.astype(np.float32) for x in inputs], attributes)
    names = [output.name for output in session.get_outputs()]
    return {name: plain(output, attributes) for name, output in zip(names, session.run(None, feed))}


def check(program, case, folder):
    expected = peer(*case[:3])
    model, feed = build(*case[:4])
    # ONNX Runtime's inverse of erf loses digits around zero.
    atol = 2e-4 if case[2].get("post_transform") == "PROBIT" else 1e-5
    code, printed, results = run(program, model, feed, folder)
    if code != 0:
        return printed[-400:]
    compared = case[4] if len(case) > 4 else list(expected)
    found = [difference(name, results[name], expected[name], atol) for name in compared]
    return next((problem for problem in found if problem), None)


def check_wrong(program, case, message, folder):
    """The caller's error, named and explained, never a crash or a wait."""
    model, feed = build(*case)
    code, printed, _ = run(program, model, feed, folder)
    if code == 2 and message in printed and "the node" in printed:
        return None
    return f"exit code {code}, expected \"{message}\": {printed[-400:]}"


def scores_of_two(program, folder):
    """Two classes with weights for both: the label is that of the larger score."""
    x = ml_cases.normal(20, 4)
    trees = ml_cases.forest("class", [0, 1], ml_cases.positive)
    for labels in (ml_cases.INTS2, ml_cases.WORDS2):
        model, feed = build("TreeEnsembleClassifier", [x], {**trees, **labels})
        code, printed, results = run(program, model, feed, folder)
        if code != 0:
            return printed[-400:]
        expected = np.array(list(labels.values())[0], object)[np.argmax(results["z"], axis=1)]
        problem = difference("y", results["y"].astype(object), expected, 0)
        if problem:
            return problem
    return None


def spare_output(program, folder):
    """An output that the operator does not have, also where opset 5 deprecates the operator."""
    trees = {**ml_cases.forest("target", [0], ml_cases.signed), "n_targets": 1}
    for version in (3, 5):
        model, feed = build("TreeEnsembleRegressor", [ml_cases.X], trees, version)
        model.graph.node[0].output.append("spare")
        model.graph.output.append(onnx.ValueInfoProto(name="spare"))
        code, printed, _ = run(program, model, feed, folder)
        if code != 2 or "the node" not in printed:
            return f"exit code {code}: {printed[-400:]}"
    return None


def main():
    onnxruntime.set_default_logger_severity(4)
    program, wanted = sys.argv[1], sys.argv[2:]
    problems = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checks = [(case, lambda case=case: check(program, case, folder))
                  for family in FAMILIES for case in family()]
        checks += [(case, lambda case=case, message=message:
                    check_wrong(program, case, message, folder))
                   for case, message in ml_cases.wrong()]
        checks += [(("TreeEnsembleClassifier", [ml_cases.X], {}),
                    lambda: scores_of_two(program, folder)),
                   (("TreeEnsembleRegressor", [ml_cases.X], {}),
                    lambda: spare_output(program, folder))]
        for case, perform in checks:
            if wanted and case[0] not in wanted:
                continue
            count += 1
            problem = perform()
            if problem:
                short = {key: value for key, value in case[2].items() if len(str(value)) < 60}
                print(f"{case[0]} {case[1][0].dtype}{case[1][0].shape} {short}: {problem}", flush=True)
                problems += 1
    print(f"{count - problems} of {count}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
