"""Expressions of integers at the edges of their types, as nodes of one model."""

import numpy as np
import onnx
from onnx import helper

OPSET = 21
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["float16", "float32", "float64"]
COMPARISONS = ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]
CHAINS = 70  # of each type


def code(dtype):
    return onnx.TensorProto.DataType.Value({"float16": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}
                                           .get(dtype, dtype.upper()))


def allowed(op, dtype, parameter="T"):
    for constraint in onnx.defs.get_schema(op, OPSET).type_constraints:
        if constraint.type_param_str == parameter:
            return f"tensor({dtype})" in constraint.allowed_type_strs
    raise KeyError(f"{op} has no {parameter}")


def edges(dtype):
    info = np.iinfo(dtype)
    values = {info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 7, 100}
    values |= {-1, -2, -7} if info.min < 0 else {info.max // 2, info.max // 2 + 1, info.max // 2 + 2}
    if info.bits == 64:
        values |= {2**53 + 1, 2**62}
    return np.array(sorted(values), dtype)


class Cases:
    """Nodes over inputs, with an output for every case."""

    def __init__(self):
        self.inputs, self.constants, self.nodes, self.outputs = {}, {}, [], []

    def input(self, name, value):
        self.inputs[name] = value
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, label, value):
        self.nodes.append(helper.make_node("Identity", [value], [label]))
        self.outputs.append(label)


def unary(cases, dtype, x):
    for op in ["Abs", "Neg", "Sign", "BitwiseNot", "Relu"]:
        if allowed(op, dtype):
            yield op, cases.node(op, x)
    low, middle, high = (cases.constant(edges(dtype)[i]) for i in (1, 5, -2))
    for name, limits in [("low", (low, "")), ("high", ("", high)), ("middle", (middle, middle)), ("both", (low, high))]:
        yield f"Clip_{name}", cases.node("Clip", x, *limits)
    for to in INTEGERS + FLOATS + ["bool"]:
        yield f"Cast_{to}", cases.node("Cast", x, to=code(to))
    for to in ["int4", "uint4"]:
        yield f"Cast_{to}", cases.node("Cast", cases.node("Cast", x, to=code(to)), to=code("int32"))
    if allowed("Pow", dtype):
        for exponent in [0, 1, 2, 3, 5, 63, 64]:
            yield f"Pow_{exponent}", cases.node("Pow", x, cases.constant(np.array(exponent, "uint8")))
        yield "Pow_far", cases.node("Pow", x, cases.constant(np.array(2**32 + 1, "int64")))


def binary(cases, dtype, x, y):
    for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu"] + COMPARISONS:
        if allowed(op, dtype):
            yield op, cases.node(op, x, y)
    for fmod in (0, 1):
        yield f"Mod_{fmod}", cases.node("Mod", x, y, fmod=fmod)
    if allowed("BitShift", dtype):
        for direction in ("LEFT", "RIGHT"):
            yield f"BitShift_{direction}", cases.node("BitShift", x, y, direction=direction)
    yield "Where", cases.node("Where", cases.node("Less", x, y), x, y)


def reductions(cases, dtype, m):
    last, first = (cases.constant(np.array([axis], "int64")) for axis in (1, 0))
    for op in ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare"]:
        if allowed(op, dtype):
            yield op, cases.node(op, m, last)
            yield f"{op}_columns", cases.node(op, m, first, keepdims=0)
    for op in ["ArgMax", "ArgMin"]:
        for from_last in (0, 1):
            yield f"{op}_{from_last}", cases.node(op, m, axis=1, select_last_index=from_last)
    for largest in (0, 1):
        values, places = cases.node("TopK", m, cases.constant(np.array([5], "int64")), outputs=2, largest=largest)
        yield f"TopK_values_{largest}", values
        yield f"TopK_places_{largest}", places
    if allowed("CumSum", dtype):
        yield "CumSum", cases.node("CumSum", m, cases.constant(np.array(1, "int64")))


def of_results(cases, dtype, m):
    """Reductions of what is computed with the results of others."""
    axis = cases.constant(np.array([1], "int64"))
    reduced = [op for op in ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"] if allowed(op, dtype)]
    for inner in reduced:
        result = cases.node(inner, m, axis)
        for combine in ["Add", "Sub", "Mul", "Div", "Max"]:
            mixed = cases.node(combine, m, result)
            for outer in reduced:
                yield f"{outer}_{combine}_{inner}", cases.node(outer, mixed, axis)
            yield f"ArgMin_{combine}_{inner}", cases.node("ArgMin", mixed, axis=1)
            first, places = cases.node("TopK", mixed, cases.constant(np.array([3], "int64")), outputs=2)
            yield f"TopK_{combine}_{inner}", first
        yield f"Less_{inner}", cases.node("Less", result, m)
        yield f"Float_{inner}", cases.node("Cast", cases.node("Abs", result), to=code("float64"))


def matrices(cases, dtype, m):
    if allowed("MatMul", dtype):
        yield "MatMul", cases.node("MatMul", m, cases.node("Transpose", m))
        yield "Gemm", cases.node("Gemm", m, m, transB=1)
    yield "Einsum", cases.node("Einsum", m, m, equation="ij,ij->i")
    for axis in (0, 1):
        for place, value in enumerate(cases.node("Unique", m, outputs=4, axis=axis)):
            yield f"Unique_{axis}_{place}", value
    yield "Unique", cases.node("Unique", m, outputs=4)[0]
    yield "NonZero", cases.node("NonZero", m)
    if allowed("MaxPool", dtype):
        image = cases.node("Unsqueeze", m, cases.constant(np.array([0, 1], "int64")))
        yield "MaxPool", cases.node("MaxPool", image, kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    edge = cases.constant(edges(dtype)[-1])
    yield "Pad", cases.node("Pad", m, cases.constant(np.array([0, 1, 1, 0], "int64")), edge)
    yield "Trilu", cases.node("Trilu", m)
    yield "OneHot", cases.node("OneHot", cases.constant(np.array([1, -1, 2], "int64")),
                               cases.constant(np.array(3, "int64")), cases.constant(edges(dtype)[[0, -1]]))
    if allowed("Range", dtype):
        info = np.iinfo(dtype)
        for name, numbers in [("up", (info.max - 7, info.max, 3)), ("down", (info.min + 7, info.min, -3))]:
            yield f"Range_{name}", cases.node("Range", *(cases.constant(np.array(n, dtype)) for n in numbers))
    if dtype in ("int8", "uint8"):
        zero, other = cases.constant(edges(dtype)[-1]), cases.constant(edges(dtype)[0])
        transposed = cases.node("Transpose", m)
        yield "MatMulInteger", cases.node("MatMulInteger", m, transposed, zero, other)
    if allowed("DequantizeLinear", dtype, "T1"):
        zero = cases.constant(edges(dtype)[0] if dtype != "int32" else np.array(0, dtype))
        yield "DequantizeLinear", cases.node("DequantizeLinear", m, cases.constant(np.array(0.5, "float32")), zero)
    if allowed("QuantizeLinear", dtype, "T2"):
        wide = cases.constant(np.array([-1e9, -7e4, -1.5, 0, 0.5, 2.5, 7e4, 1e9], "float32"))
        zero = cases.constant(edges(dtype)[1])
        yield "QuantizeLinear", cases.node("QuantizeLinear", wide, cases.constant(np.array(1, "float32")), zero)


def scattered(cases, dtype, m):
    indices = np.random.default_rng(0).integers(0, 3, cases.inputs[m].shape)
    places = cases.constant(indices.astype("int64"))
    updates = cases.node("BitwiseNot", m)
    for reduction in ["add", "mul", "max", "min"]:
        yield f"ScatterElements_{reduction}", cases.node("ScatterElements", m, places, updates, reduction=reduction)
        yield f"ScatterND_{reduction}", cases.node("ScatterND", m, cases.constant(indices[:, :1].astype("int64")),
                                                   updates, reduction=reduction)


def table(dtype):
    """Every operator alone."""
    cases = Cases()
    values = edges(dtype)
    column, row = cases.input("x", values[:, None]), cases.input("y", values[None, :])
    shuffled = np.random.default_rng(1).permuted(np.tile(values, (4, 1)), axis=1)
    matrix = cases.input("m", shuffled)
    wide = cases.input("w", np.random.default_rng(2).choice(values, (3, 150)))
    for found in (unary(cases, dtype, column), binary(cases, dtype, column, row), reductions(cases, dtype, wide),
                  of_results(cases, dtype, wide), matrices(cases, dtype, matrix), scattered(cases, dtype, matrix)):
        for label, value in found:
            cases.output(f"{label}_{dtype}", value)
    return cases


class Chain:
    """A random expression: values of several types, of which the last is the result."""

    def __init__(self, cases, random, dtype, values):
        self.cases, self.random, self.label = cases, random, ""
        self.values = [(value, dtype) for value in values]

    def pick(self, dtype=None):
        choices = [value for value, of in self.values if dtype in (None, of)]
        # The newest is what a chain goes on with.
        return choices[-1] if self.random.random() < 0.7 else choices[self.random.integers(len(choices))]

    def add(self, op, dtype, *inputs, **attributes):
        self.label += op
        self.values.append((self.cases.node(op, *inputs, **attributes), dtype))

    def step(self):
        dtype = self.values[-1][1]
        binary_ops = ["Add", "Sub", "Mul", "Div", "Max", "Min", "BitwiseAnd", "BitwiseXor", "Mod", "Mod", "BitShift"]
        op = self.random.choice(["Abs", "Neg", "Sign", "BitwiseNot", "Cast", "Where"] + binary_ops)
        if op == "Cast":
            to = self.random.choice(INTEGERS)
            self.add("Cast", to, self.pick(dtype), to=code(to))
            self.label += to
        elif op == "Where":
            less = self.cases.node(self.random.choice(COMPARISONS), self.pick(dtype), self.pick(dtype))
            self.add(op, dtype, less, self.pick(dtype), self.pick(dtype))
        elif allowed(op, dtype):
            attributes = {"Mod": {"fmod": int(self.random.integers(2))},
                          "BitShift": {"direction": self.random.choice(["LEFT", "RIGHT"])}}.get(op, {})
            inputs = [self.pick(dtype)] + [self.pick(dtype)] * (op in binary_ops)
            if op in ("Add", "Mul", "Sub") and self.random.random() < 0.3:
                inputs[1] = self.cases.constant(self.random.choice(edges(dtype)))
            self.add(op, dtype, *inputs, **attributes)

    def finish(self):
        dtype = self.values[-1][1]
        end = self.random.choice(["Compare", "Float", "ReduceMax", "ArgMin", "none"])
        value = self.values[-1][0]
        if end == "Compare":
            op = self.random.choice(COMPARISONS)
            self.add(op, "bool", *self.random.permutation([value, self.pick(dtype)]))
        elif end == "Float":
            self.add("Cast", "float64", value, to=code("float64"))
        elif end == "ReduceMax" and allowed(end, dtype):
            self.add(end, dtype, value)
        elif end == "ArgMin":
            self.add(end, "int64", value, axis=0)
        return self.values[-1][0]


def chains(dtype):
    """Two to four operators in a row, which fuse."""
    random = np.random.default_rng(INTEGERS.index(dtype))
    cases = Cases()
    inputs = [cases.input(name, random.permutation(np.resize(edges(dtype), 60))) for name in "xyz"]
    for number in range(CHAINS):
        chain = Chain(cases, random, dtype, inputs)
        for _ in range(random.integers(2, 5)):
            chain.step()
        cases.output(f"{dtype}_{number}_{chain.label}", chain.finish())
    return cases


def from_floats(dtype):
    """Casts of what the integer types hold, and of what they do not where numpy and ONNX Runtime agree."""
    cases = Cases()
    held = np.array([0, -0.0, 0.9, 1.5, 2.5, 100.7, 127], dtype)
    for to in INTEGERS:
        info = np.iinfo(to)
        whole = np.array([info.min, info.max // 2 + 1, info.max // 4 * 3], "float64").astype(dtype)
        below = np.nextafter(np.array([float(info.max) + 1], dtype), np.array([0], dtype))
        beyond = np.array([np.nan, np.inf, -np.inf, 3e4, -3e4, 1e9, -1e9], "float64").astype(dtype)
        below = below[np.isfinite(below)]
        numbers = np.concatenate([held, whole[np.isfinite(whole)], below] + [beyond] * (to != "uint32"))
        value = cases.input(f"from_{to}", numbers)
        cases.output(f"Cast_{dtype}_{to}", cases.node("Cast", value, to=code(to)))
    return cases
