"""com.microsoft operators: what redfuser-run computes against ONNX Runtime, and what ONNX Runtime computes of the file
that redfuser-opt writes.

    python contrib_test.py REDFUSER_RUN REDFUSER_OPT [OPERATOR]
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import contrib_attention
import contrib_grouped
import contrib_layers
import contrib_mixers
import contrib_quantized

CASES = (contrib_attention.CASES + contrib_grouped.CASES + contrib_layers.CASES +
         contrib_mixers.CASES + contrib_quantized.CASES)


def build(case):
    names = ["" if value is None else f"x{k}" for k, value in enumerate(case.inputs)]
    node = helper.make_node(case.op, names, case.outputs, name="the node", domain=case.domain,
                            **case.attributes)
    infos, weights, feed = [], [], {}
    for k, value in enumerate(case.inputs):
        if value is None:
            continue
        if k in case.constants:
            weights.append(numpy_helper.from_array(value, names[k]))
            continue
        infos.append(helper.make_tensor_value_info(
            names[k], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        feed[names[k]] = value
    results = [helper.make_tensor_value_info(name, case.types[name], None) if name in case.types
               else onnx.ValueInfoProto(name=name) for name in case.outputs if name]
    imports = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, results, weights)
    return helper.make_model(graph, opset_imports=imports, ir_version=9), feed


def outputs_of_peer(model, feed):
    """Its optimiser is off. model: the path of a file, or its bytes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed)))


def expected_outputs(case):
    if case.expected:
        return dict(zip(case.outputs, case.expected(*case.inputs)))
    model, feed = build(case.like or case)
    return outputs_of_peer(model.SerializeToString(), feed)


def check_written(optimize, case, path, feed, expected):
    """A problem of the written file, where ONNX Runtime has the operator."""
    if case.expected or case.like:
        return None
    target = path.with_name("written.onnx")
    done = subprocess.run([optimize, path, target], capture_output=True, text=True)
    if done.returncode:
        return done.stderr[-300:]
    for name, value in outputs_of_peer(str(target), feed).items():
        if not np.allclose(value, expected[name], case.tolerance, case.tolerance, equal_nan=True):
            return f"the written file gives another {name}"
    return None


def check(run, optimize, case, folder):
    model, feed = build(case)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    np.savez(folder / "inputs.npz", **feed)
    command = [run, path, "--inputs", folder / "inputs.npz"]
    if case.refused:
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.returncode == 2 and all(
            part in done.stderr for part in (case.op, '"the node"', case.refused))
        return None if said else f"exit {done.returncode}: {done.stderr[-300:]}"
    results = expected_outputs(case)
    compared = case.compared or [name for name in case.outputs if name]
    np.savez(folder / "outputs.npz", **{name: results[name] for name in compared})
    tolerance = str(case.tolerance)
    command += ["--compare", folder / "outputs.npz", "--rtol", tolerance, "--atol", tolerance]
    if case.fused:
        command += ["--assert-fused", f"{case.fused}>=1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return (done.stdout + done.stderr)[-500:]
    return check_written(optimize, case, path, feed, results)


def main():
    onnxruntime.set_default_logger_severity(4)
    problems = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if len(sys.argv) > 3 and case.op != sys.argv[3]:
                continue
            try:
                problem = check(sys.argv[1], sys.argv[2], case, pathlib.Path(folder))
            except Exception as error:  # the peer's
                problem = f"no expected outputs: {str(error)[:400]}"
            print(f"{case.op} {case.attributes}: {problem or 'ok'}", flush=True)
            problems += problem is not None
            count += 1
    print(f"{count - problems} of {count}")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
