"""Operators as files of opsets 7 to 27 write them: one model per form and opset in which the operator
changed, against ONNX Runtime or, where that has no kernel, ONNX's reference evaluator.

    python opset_test.py REDFUSER_RUN [OPERATOR]
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.defs
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import opset_control
import opset_forms
import opset_layers

FORMS = (opset_forms.ELEMENTWISE + opset_forms.REDUCTIONS + opset_forms.SHAPES + opset_layers.LAYERS +
         opset_control.CONTROL)


def changes():
    """The opsets in which each operator changed."""
    table = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            table.setdefault(schema.name, set()).add(schema.since_version)
    return table


def opsets(form, table):
    return sorted(v for v in {form.first, form.last, *table[form.op]} if form.first <= v <= form.last)


def array(value):
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind == "U" else value


def build(form, opset):
    """The model and its inputs; branches of an If see the inputs by name."""
    names, infos, weights, feed = [], [], [], {}
    for index, given in enumerate(form.inputs):
        name = "" if given is None else f"x{index}"
        names.append(name)
        if isinstance(given, opset_forms.Known):
            weights.append(numpy_helper.from_array(array(given.value), name))
        elif given is not None:
            feed[name] = array(given)
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(feed[name].dtype), feed[name].shape))
    taken = names[:1] if form.op == "If" else names
    outputs = [f"y{index}" for index in range(form.outputs)]
    node = helper.make_node(form.op, taken, outputs, name="the node", **form.attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 21 else 10), feed


def expected(model, feed):
    try:
        session = onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(model).SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feed)
    except Exception as first:
        try:
            return ReferenceEvaluator(model).run(None, feed)
        except Exception as second:
            raise RuntimeError(f"ONNX Runtime: {str(first)[:150]}; reference: {str(second)[:150]}") from second


def check(run, form, opset, table, folder):
    model, feed = build(form, opset)
    try:
        # The peers end at older opsets than ONNX does: they run the one that the definition is of.
        results = expected(*build(form, max(v for v in table[form.op] if v <= opset)))
    except RuntimeError as error:
        return f"no peer: {error}"
    for index, value in enumerate(results):
        proto = numpy_helper.from_array(np.asarray(value), f"y{index}")
        (folder / f"output_{index}.pb").write_bytes(proto.SerializeToString())
    for index, (name, value) in enumerate(feed.items()):
        (folder / f"input_{index}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    inputs = ["--inputs", folder] if feed else []
    done = subprocess.run([run, folder / "model.onnx", *inputs, "--compare", folder, "--rtol", str(form.tolerance), "--atol", str(form.tolerance)],
                          capture_output=True, text=True, timeout=120)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-400:]


def main():
    onnxruntime.set_default_logger_severity(4)
    table, work = changes(), []
    for form in FORMS:
        if len(sys.argv) < 3 or form.op == sys.argv[2]:
            work += [(form, opset) for opset in opsets(form, table)]
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def one(index):
            folder = pathlib.Path(root, str(index))
            folder.mkdir()
            try:
                return check(sys.argv[1], *work[index], table, folder)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        problems = list(pool.map(one, range(len(work))))
    for (form, opset), problem in zip(work, problems):
        if problem:
            print(f"{form.op}-{opset} {str(form.attributes)[:100]}: {problem}\n")
    good = sum(problem is None for problem in problems)
    print(f"{good} of {len(work)} models of {len({form.op for form, _ in work})} operators")
    return 0 if good == len(work) and work else 1


if __name__ == "__main__":
    sys.exit(main())
