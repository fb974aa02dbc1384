"""Forms of operators: what a node looked like from one opset of ai.onnx to another."""

import dataclasses

import numpy as np

RANDOM = np.random.default_rng(3)


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def i(*values):
    return np.array(values, np.int64)


@dataclasses.dataclass
class Known:
    """An input that is an initializer."""

    value: np.ndarray


def k(*values):
    return Known(i(*values))


@dataclasses.dataclass
class Form:
    op: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    first: int = 7  # opsets that have this form
    last: int = 27
    outputs: int = 1
    tolerance: float = 1e-4


def same(ops, *inputs, **attributes):
    return [Form(op, list(inputs), attributes) for op in ops.split()]


X, UNIT = f(2, 3, 4), np.tanh(f(2, 3, 4)).astype(np.float32)
IMAGE, SIGNAL = f(1, 3, 6, 6), f(2, 3, 8)
BITS = RANDOM.random((2, 3, 4)) > 0.5
REDUCE = "L1 L2 LogSumExp Max Mean Min Prod Sum SumSquare"
SPARSE = np.where(RANDOM.random((3, 4)) > 0.5, f(3, 4), 0).astype(np.float32)
BATCH_STATE = [f(3), f(3), f(3), np.abs(f(3))]

ELEMENTWISE = (
    same("Abs Ceil Cos Elu Exp Floor HardSigmoid Identity LeakyRelu Neg Relu Selu Sigmoid Sin Softplus "
         "Softsign Tan Tanh Asin Acos Atan", UNIT) +
    same("Sqrt Log Reciprocal", np.abs(X) + 0.5) +
    [Form(op, [UNIT], first=9) for op in ("Acosh Asinh Atanh Cosh Erf IsNaN Sign Sinh Shrink").split()
     if op != "Acosh"] +
    [Form("Acosh", [np.abs(X) + 1.5], first=9), Form("ThresholdedRelu", [X], first=10),
     Form("IsInf", [np.array([1, np.inf, -np.inf], np.float32)], first=10),
     Form("Round", [np.array([0.5, 1.5, -2.5, 0.7], np.float32)], first=11), Form("Celu", [X], first=12),
     Form("HardSwish", [X], first=14), Form("Mish", [X], first=18), Form("Gelu", [X], first=20),
     Form("Gelu", [X], {"approximate": "tanh"}, first=20), Form("Swish", [X], first=24)] +
    same("Add Sub Mul Div PRelu", X, f(3, 4)) + same("Max Min Mean Sum", X, f(2, 3, 4), f(2, 3, 4)) +
    [Form("Max", [X, f(4)], first=8), Form("Max", [i(1, 5), i(3, 2)], first=12),
     Form("Min", [np.array([1, 5], np.int32), np.array([3, 2], np.int32)], first=12)] +
    same("Greater Less", X, f(4)) + same("And Or Xor", BITS, BITS[:, ::-1].copy()) + same("Not", BITS) +
    same("Equal", i(1, 2, 3), i(1, 3, 3)) + [Form("Equal", [X, X], first=11)] +
    [Form("GreaterOrEqual", [X, f(4)], first=12), Form("LessOrEqual", [X, f(4)], first=12)] +
    same("Pow", np.abs(X), f(4)) + [Form("Pow", [i(2, 3), np.array([2, 3], np.int32)], first=12)] +
    [Form("Mod", [i(-7, 7), i(3, 3)], first=10), Form("Mod", [X, f(4)], {"fmod": 1}, first=10),
     Form("BitShift", [np.array([8, 9], np.uint8), np.array([1, 2], np.uint8)], {"direction": "LEFT"}, first=11),
     Form("BitwiseAnd", [i(12, 10), i(10, 6)], first=18), Form("BitwiseNot", [i(12, 10)], first=18),
     Form("Where", [BITS, X, f(2, 3, 4)], first=9)] +
    [Form("Clip", [X], {"min": -0.5, "max": 0.5}, last=10), Form("Clip", [X], {"max": 0.5}, last=10),
     Form("Clip", [X, Known(np.float32(-0.5)), Known(np.float32(0.5))], first=11),
     Form("Clip", [X, None, Known(np.float32(0.5))], first=11),
     Form("Clip", [i(1, 9), Known(np.int64(2)), None], first=12)] +
    [Form("Cast", [X * 9], {"to": t}) for t in (6, 7, 9, 10, 11)] +
    [Form("Cast", [np.array(["1.5", "-2", "1e3"])], {"to": 1}, first=9),
     Form("Cast", [np.array(["1", "-2", "1000"])], {"to": 7}, first=9),
     Form("Cast", [i(1, -2)], {"to": 8}, first=9), Form("Cast", [X * 9], {"to": 16}, first=13),
     Form("CastLike", [X, np.array([1.0])], first=15)]
)

REDUCTIONS = (
    [Form("Reduce" + r, [X], {"axes": [0, -1] if r == "Sum" else [0, 2]}, last=12 if r == "Sum" else 17)
     for r in REDUCE.split()] +
    [Form("ReduceLogSum", [np.abs(X)], {"axes": [1], "keepdims": 0}, last=17)] +
    [Form("Reduce" + r, [X], {"keepdims": 0}) for r in REDUCE.split()] +
    [Form("Reduce" + r, [X, k(0, 2)], {"keepdims": 0}, first=13 if r == "Sum" else 18) for r in REDUCE.split()] +
    [Form("Reduce" + r, [np.abs(X), k()], {"noop_with_empty_axes": 1}, first=13 if r == "Sum" else 18) for r in REDUCE.split()] +
    [Form("ReduceMax", [np.array([[3, -7], [2, 9]], np.int8)], {"axes": [1]}, first=12, last=17),
     Form("ReduceMax", [BITS, k(1)], first=20)] +
    [Form(op, [X], {"axis": 1, "keepdims": 0}) for op in ("ArgMax", "ArgMin")] +
    [Form(op, [X], {"axis": -1}, first=11) for op in ("ArgMax", "ArgMin")] +
    [Form("ArgMax", [np.array([[1, 3, 3]], np.float32)], {"axis": 1, "select_last_index": 1}, first=12)] +
    [Form(op, [X], a) for op in ("Softmax", "LogSoftmax", "Hardmax") for a in ({}, {"axis": 0}, {"axis": 1}, {"axis": 2})] +
    [Form(op, [X], {"axis": -2}, first=11) for op in ("Softmax", "LogSoftmax", "Hardmax")] +
    [Form("TopK", [X], {"k": 2, "axis": 1}, last=9, outputs=2), Form("TopK", [X, k(2)], {"axis": 1}, first=10, outputs=2),
     Form("TopK", [X, k(2)], {"axis": -1, "largest": 0}, first=11, outputs=2),
     Form("CumSum", [X, Known(np.int64(1))], {"reverse": 1, "exclusive": 1}, first=11),
     Form("CumProd", [X, Known(np.int64(1))], first=26)] +
    [Form("LpNormalization", [X], {"axis": 1, "p": p}) for p in (1, 2)]
)

SHAPES = (
    [Form("Concat", [X, f(2, 3, 2)], {"axis": 2}), Form("Concat", [X, f(2, 3, 2)], {"axis": -1}, first=11),
     Form("Flatten", [X], {"axis": 2}), Form("Flatten", [X], {"axis": -1}, first=11), Form("Flatten", [i(1, 2, 3)], {"axis": 0}, first=9),
     Form("Gather", [X, i(1, 0)], {"axis": 1}), Form("Gather", [X, i(-1, 0)], {"axis": -1}, first=11),
     Form("GatherElements", [f(3, 3), np.array([[1, 2], [0, -1], [0, 0]])], {"axis": 1}, first=11),
     Form("GatherND", [X, np.array([[0, 1], [1, 2]])], first=11),
     Form("GatherND", [X, np.array([[1], [2]])], {"batch_dims": 1}, first=12),
     Form("Reshape", [X, k(0, -1)]), Form("Reshape", [f(0, 3, 4), k(3, 4, 0)], {"allowzero": 1}, first=14),
     Form("Expand", [f(3, 1), k(2, 3, 4)], first=8), Form("Tile", [X, k(1, 2, 1)]),
     Form("Transpose", [X], {"perm": [2, 0, 1]}), Form("Transpose", [X]),
     Form("Squeeze", [f(1, 3, 1)], {"axes": [0]}, last=12), Form("Squeeze", [f(1, 3, 1)]),
     Form("Squeeze", [f(1, 3, 1)], {"axes": [-1]}, first=11, last=12), Form("Squeeze", [f(1, 3, 1), k(-1)], first=13),
     Form("Unsqueeze", [X], {"axes": [0, 2]}, last=12), Form("Unsqueeze", [X], {"axes": [-1]}, first=11, last=12),
     Form("Unsqueeze", [X, k(0, -1)], first=13),
     Form("Split", [f(6, 2)], {"axis": 0, "split": [1, 2, 3]}, last=12, outputs=3), Form("Split", [f(6, 2)], {"axis": 0}, last=17, outputs=3),
     Form("Split", [f(6, 2), k(1, 2, 3)], {"axis": 0}, first=13, outputs=3),
     Form("Split", [f(7, 2)], {"axis": 0, "num_outputs": 3}, first=18, outputs=3),
     Form("Slice", [X], {"starts": [0, 1], "ends": [1, -1], "axes": [0, 2]}, last=9),
     Form("Slice", [X], {"starts": [1], "ends": [99]}, last=9),
     Form("Slice", [X, k(0, -1), k(2, -9), k(0, 2), k(1, -2)], first=10), Form("Slice", [X, k(1), k(2)], first=10),
     Form("Slice", [X, k(0), k(2), k(-1)], first=11),
     Form("Pad", [X], {"pads": [0, 1, 0, 1, 0, 2], "value": 1.5}, last=10),
     Form("Pad", [X], {"pads": [0, 1, 1, 0, 1, 1], "mode": "reflect"}, last=10), Form("Pad", [X], {"pads": [0, -1, 1, 0, 0, 1], "mode": "edge"}, last=10),
     Form("Pad", [X, k(0, 1, 0, 1, 0, 2), Known(np.float32(1.5))], first=11), Form("Pad", [X, k(0, 1, 1, 0, 1, 1)], {"mode": "reflect"}, first=11),
     Form("Pad", [X, k(1, 2), None, k(2)], first=18), Form("Pad", [X, k(1, 2), None, k(1)], {"mode": "wrap"}, first=19),
     Form("Shape", [X]), Form("Shape", [X], {"start": 1, "end": -1}, first=15), Form("Size", [X]),
     Form("ConstantOfShape", [k(2, 3)], first=9), Form("EyeLike", [f(3, 4)], {"k": 1}, first=9),
     Form("NonZero", [SPARSE], first=9), Form("Compress", [X, np.array([True, False, True])], {"axis": 1}, first=9),
     Form("Compress", [X, np.array([True, False, True])], {"axis": -2}, first=11),
     Form("OneHot", [i(0, 2, 1), Known(np.int64(3)), np.array([0, 1], np.float32)], first=9),
     Form("OneHot", [i(0, -2, 1), Known(np.int64(3)), np.array([0, 1], np.float32)], {"axis": -1}, first=11),
     Form("Scatter", [f(3, 3), np.array([[1, 0, 2]]), f(1, 3)], {"axis": 0}, first=9, last=10),
     Form("ScatterElements", [f(3, 3), np.array([[1, 0, -1]]), f(1, 3)], {"axis": 0}, first=11),
     Form("ScatterElements", [f(3, 3), np.array([[1, 1, 1]]), f(1, 3)], {"axis": 1, "reduction": "add"}, first=16),
     Form("ScatterElements", [f(3, 3), np.array([[1, 1, 1]]), f(1, 3)], {"axis": 1, "reduction": "max"}, first=18),
     Form("ScatterND", [X, np.array([[1], [0]]), f(2, 3, 4)], first=11),
     Form("ScatterND", [X, np.array([[1], [1]]), f(2, 3, 4)], {"reduction": "mul"}, first=16),
     Form("ScatterND", [X, np.array([[1], [1]]), f(2, 3, 4)], {"reduction": "min"}, first=18),
     Form("DepthToSpace", [f(1, 8, 2, 3)], {"blocksize": 2}), Form("DepthToSpace", [f(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, first=11),
     Form("SpaceToDepth", [f(1, 2, 4, 6)], {"blocksize": 2}), Form("ReverseSequence", [X, i(1, 2, 2)], {"batch_axis": 1, "time_axis": 0}, first=10),
     Form("Range", [Known(np.float32(1)), Known(np.float32(7)), Known(np.float32(2))], first=11),
     Form("Trilu", [X, Known(np.int64(1))], first=14), Form("Unique", [i(3, 1, 3, 2)], {"sorted": 0}, first=11, outputs=4),
     Form("Upsample", [f(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}, last=8),
     Form("Upsample", [f(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, last=8),
     Form("Upsample", [f(1, 1, 2, 3), Known(np.array([1, 1, 2, 3], np.float32))], {"mode": "nearest"}, first=9, last=9),
     Form("Upsample", [f(1, 1, 2, 3), Known(np.array([1, 1, 2, 2], np.float32))], {"mode": "linear"}, first=9, last=9),
     Form("Einsum", [f(2, 3), f(3, 4)], {"equation": "ij,jk->ki"}, first=12), Form("Det", [f(2, 3, 3)], first=11)] +
    [Form("Resize", [f(1, 1, 4, 6), Known(np.array([1, 1, h, w], np.float32))], {"mode": m}, first=10, last=10)
     for m in ("nearest", "linear") for h, w in ((2, 2), (0.5, 0.5))] +
    [Form("Resize", [f(1, 1, 4, 6), Known(f(0)), Known(np.array([1, 1, 1.5, 0.5], np.float32))], {"mode": m, "coordinate_transformation_mode": c}, first=11)
     for m in ("nearest", "linear", "cubic") for c in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")] +
    [Form("Resize", [f(1, 1, 4, 6), Known(f(8)), Known(f(0)), k(1, 1, 7, 3)], {"mode": m}, first=11) for m in ("nearest", "linear", "cubic")] +
    [Form("Resize", [f(1, 1, 6, 8), None, Known(np.array([0.5, 0.5], np.float32))], {"mode": "linear", "antialias": 1, "axes": [2, 3]}, first=18),
     Form("Resize", [f(1, 1, 6, 8), None, None, k(4, 4)], {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, first=18),
     Form("Resize", [f(1, 1, 6, 8), None, Known(np.array([0.6, 0.6], np.float32))], {"mode": "linear", "axes": [2, 3], "coordinate_transformation_mode": "half_pixel_symmetric"}, first=19)]
)
