"""Composite operators in every float type that their schemas allow, against fp64.

    python body_types_test.py REDFUSER_RUN [--device cuda] [OPERATOR]

Which operators have a function body, and which types they take, is read from ONNX's schemas and, for
com.microsoft, from ONNX Runtime's: a new operator or type is covered, or fails for want of a form.
"""

import itertools
import sys

import numpy as np
import onnx
import onnx.defs
import onnxruntime.capi.onnxruntime_pybind11_state as ort_state
from onnx import helper
from onnx.reference import ReferenceEvaluator

import contrib_test
import float_types
import opset_control
import opset_forms
import opset_layers
from opset_forms import Form, f, i

# Relative to the largest number of the result: roundings to the type on the way, which unfused
# attention's softmax magnifies. Constants of bodies, and attributes, are fp32.
TOLERANCE = {"float16": 0.0125, "bfloat16": 0.1, "float": 1e-5, "double": 1e-7}
# Bodies that compute in fp32 whatever the type, by the operator's definition.
SINGLE = {"LayerNormalization", "GroupNormalization", "RMSNormalization", "HannWindow", "HammingWindow", "BlackmanWindow",
          "Range"}
BY_SUBGRAPH = {"SequenceMap"}  # its element types are those of its subgraph
NO_REFERENCE = {("Attention", 7)}  # ONNX's reference evaluator fails on this number of inputs
RANDOM_RESULT = {"Bernoulli"}
TYPE_ATTRIBUTES = {"HannWindow": "output_datatype", "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype",
                   "Bernoulli": "dtype"}
SCORES, LABELS = f(5, 4), i(1, 0, 3, 2, 1)
HEADS = [f(1, 2, 4, 8), f(1, 2, 6, 8), f(1, 2, 6, 8)]
FORMS = [
    Form("AffineGrid", [f(2, 2, 3), i(2, 1, 4, 5)]),
    Form("AffineGrid", [f(1, 2, 3), i(1, 3, 1, 5)]),
    Form("AffineGrid", [f(2, 3, 4), i(2, 1, 3, 4, 5)], {"align_corners": 1}),
    Form("Attention", [*HEADS, f(4, 6)], {"softcap": 2.0}),
    Form("Bernoulli", [np.full((4, 5), 0.5, np.float32)]),
    Form("CausalConvWithState", [f(1, 4, 16), f(4, 1, 3), f(4)], outputs=2),
    Form("CausalConvWithState", [f(1, 4, 16), f(4, 1, 3), f(4), f(1, 4, 2)], {"activation": "silu"}, outputs=2),
    Form("Celu", [f(3, 4)], {"alpha": 0.5}),
    Form("CenterCropPad", [f(5, 4), i(3, 6)]),
    Form("FlexAttention", HEADS),
    *(Form(name, [np.array(9, np.int64)]) for name in ("HannWindow", "HammingWindow", "BlackmanWindow")),
    Form("LinearAttention", [f(1, 4, 16)] * 3, {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}, outputs=2),
    Form("LinearAttention", [f(1, 4, 16), f(1, 4, 16), f(1, 4, 16), f(1, 2, 8, 8), -abs(f(1, 4, 16)), abs(f(1, 4, 2))],
         {"q_num_heads": 2, "kv_num_heads": 2}, outputs=2),
    Form("MeanVarianceNormalization", [f(2, 3, 4) + 1], {"axes": [0, 2]}),
    Form("NegativeLogLikelihoodLoss", [SCORES, LABELS, abs(f(4)) + 0.5], {"ignore_index": 1}),
    Form("NegativeLogLikelihoodLoss", [SCORES, LABELS], {"ignore_index": 1}),
    Form("NegativeLogLikelihoodLoss", [SCORES, LABELS, abs(f(4)) + 0.5], {"reduction": "sum"}),
    Form("ReduceLogSum", [abs(f(3, 4)) + 0.5, i(1)]),
    Form("SoftmaxCrossEntropyLoss", [SCORES, LABELS, abs(f(4)) + 0.5], {"ignore_index": 1}, outputs=2),
    Form("SoftmaxCrossEntropyLoss", [SCORES, LABELS], {"reduction": "none"}),
]


def bodies():
    """The newest schema of every operator that ONNX gives a function body."""
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.has_function or schema.has_context_dependent_function:
            key = (schema.domain, schema.name)
            newest[key] = max(newest.get(key, schema), schema, key=lambda each: each.since_version)
    return {key: onnx.defs.get_schema(key[1], domain=key[0]) for key in newest}


def value_of(given):
    return np.asarray(given.value if isinstance(given, opset_forms.Known) else given)


class Typed:
    """A node with its float inputs in types, one for each of its schema's type variables."""

    def __init__(self, domain, op, inputs, attributes, outputs, formal, allowed, opset):
        self.domain, self.op, self.inputs, self.attributes = domain, op, inputs, attributes
        self.outputs, self.formal, self.opset = outputs, formal, opset
        self.variables = {}
        for index, array in enumerate(inputs):
            variable = self.variable(index)
            if array is not None and array.dtype == np.float32 and allowed.get(variable):
                self.variables[variable] = allowed[variable]
        if op in TYPE_ATTRIBUTES and not domain:
            self.variables["attribute"] = list(float_types.TYPES)

    def variable(self, index):
        return self.formal[min(index, len(self.formal) - 1)]

    def choices(self):
        """One type for all variables, and for ONNX's operators every mixture of fp16 and fp32."""
        names = list(self.variables)
        result = [dict.fromkeys(names, dtype) for dtype in float_types.TYPES if all(dtype in each for each in self.variables.values())]
        for mixed in itertools.product(("float16", "float"), repeat=len(names) if self.domain != "com.microsoft" else 0):
            choice = dict(zip(names, mixed))
            if choice and choice not in result and all(dtype in self.variables[name] for name, dtype in choice.items()):
                result.append(choice)
        return result

    def build(self, choice):
        """The model with its inputs in these types."""
        feed, names = {}, []
        for index, array in enumerate(self.inputs):
            names.append("" if array is None else f"x{index}")
            if array is None:
                continue
            if array.dtype == np.float32 and self.variable(index) in self.variables:
                array = array.astype(float_types.TYPES[choice[self.variable(index)]][1])
            feed[f"x{index}"] = array
        attributes = dict(self.attributes)
        if "attribute" in choice:
            attributes[TYPE_ATTRIBUTES[self.op]] = float_types.TYPES[choice["attribute"]][0]
        node = helper.make_node(self.op, names, self.outputs, domain=self.domain, **attributes)
        return float_types.model_of([node], feed, [name for name in self.outputs if name], self.opset, [self.domain] if self.domain else []), feed


def mean_variance_normalization(x, axes=(0, 2, 3)):
    centred = x - x.mean(tuple(axes), keepdims=True)
    return [centred / ((centred**2).mean(tuple(axes), keepdims=True)**0.5 + 1e-9)]


# Where ONNX's reference evaluator takes no fp64.
OURS = {"MeanVarianceNormalization": mean_variance_normalization}


def expected(typed, feed, program):
    """Of the inputs as they were rounded: ONNX's reference in fp64, or for com.microsoft ours in fp32,
    which contrib_test.py compares with ONNX Runtime."""
    widest = "float" if typed.domain == "com.microsoft" else "double"
    model, _ = typed.build(dict.fromkeys(typed.variables, widest))
    array = float_types.TYPES[widest][1]
    wide = {name: value.astype(array) if value.dtype in float_types.NUMBERS else value for name, value in feed.items()}
    if typed.domain == "com.microsoft":
        return float_types.run(program, model, wide)
    if typed.op in OURS:
        results = OURS[typed.op](*wide.values(), **typed.attributes)
    else:
        results = ReferenceEvaluator(model).run(None, wide)
    return dict(zip((name for name in typed.outputs if name), results))


def check(program, typed, choice, arguments):
    model, feed = typed.build(choice)
    wanted = None if typed.op in RANDOM_RESULT else expected(typed, feed, program)
    tolerance = max(TOLERANCE[dtype] for dtype in choice.values())
    if typed.op in SINGLE or typed.domain == "com.microsoft":
        tolerance = max(tolerance, TOLERANCE["float"])
    for extra in ([], ["--no-fuse"]):
        outputs = float_types.run(program, model, feed, [*arguments, *extra])
        for name, value in outputs.items():
            error = float_types.error_of(value, wanted[name]) if wanted else 0
            if isinstance(error, str) or not error <= tolerance:
                return f"{name} {' '.join(extra)}: error {error}"
    return None


def onnx_work(operator):
    table = opset_forms.ELEMENTWISE + opset_forms.REDUCTIONS + opset_forms.SHAPES + opset_layers.LAYERS + opset_control.CONTROL + FORMS
    opset = onnx.defs.onnx_opset_version()
    work, missing = [], []
    for (domain, op), schema in sorted(bodies().items()):
        if op in BY_SUBGRAPH or op != (operator or op):
            continue
        forms = [form for form in table if form.op == op and form.last >= opset]
        if not forms:
            missing.append(op)
        allowed = {each.type_param_str: [name for name in float_types.TYPES if f"tensor({name})" in each.allowed_type_strs]
                   for each in schema.type_constraints}
        formal = [each.type_str for each in schema.inputs]
        for form in forms:
            if (op, len(form.inputs)) in NO_REFERENCE:
                continue
            inputs = [None if given is None else value_of(given) for given in form.inputs]
            names = [f"y{index}" for index in range(form.outputs)]
            work.append(Typed(domain, op, inputs, form.attributes, names, formal, allowed, opset))
    return work, missing


def contrib_work(operator):
    schemas = {schema.name: schema for schema in ort_state.get_all_operator_schema() if schema.domain == "com.microsoft"}
    work = []
    for case in contrib_test.CASES:
        if case.domain != "com.microsoft" or case.refused or case.op != (operator or case.op):
            continue
        schema = schemas[case.op]
        allowed = {each.type_param_str: [name for name in float_types.TYPES if f"tensor({name})" in each.allowed_type_strs]
                   for each in schema.type_constraints}
        work.append(Typed(case.domain, case.op, case.inputs, case.attributes, case.outputs,
                          [each.typeStr for each in schema.inputs], allowed, case.opset))
    return work


def main():
    given = float_types.options(__doc__)
    typed, missing = onnx_work(given.operator)
    work = [(each, choice) for each in typed + contrib_work(given.operator) if each.variables for choice in each.choices()]
    for op in missing:
        print(f"{op}: it has a function body and no form here")
    return float_types.run_all(work, check, lambda each, choice: f"{each.op} {each.attributes} {' '.join(choice.values())}", given,
                               len(missing))


if __name__ == "__main__":
    sys.exit(main())
