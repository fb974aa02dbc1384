"""Nodes of random graphs: for each operator, inputs that its schema allows and attributes drawn at random."""

import numpy as np
import onnx.defs
from onnx import helper

from random_draw import BFLOAT16, BOOL, FLOATS, INTEGERS, NUMBERS, OPSET, SIGNED, UNSIGNED, Rejected

FULL = [np.dtype(t) for t in ("float32", "float64", "float16")]
WIDE = [np.dtype(t) for t in ("float32", "float32", "float64")]
SINGLE = [np.dtype("float32")]
WHOLE = [np.dtype(t) for t in ("int32", "int64", "uint32", "uint64", "float32", "float64", "float16")]
ANY = NUMBERS + BOOL
POSITIVE = (1, 2, 3)


def allowed(op, index=0):
    """The types that the schema allows for an input, of those that are drawn."""
    schema = onnx.defs.get_schema(op, OPSET, "")
    names = set(schema.inputs[min(index, len(schema.inputs) - 1)].types)
    def text(dtype):
        return {np.dtype("float32"): "tensor(float)", np.dtype("float64"): "tensor(double)"}.get(dtype, f"tensor({dtype.name})")
    return [d for d in dict.fromkeys(ANY) if text(d) in names]


def unary(op, dtypes=None, calm=False, new=False, **attributes):
    return lambda g: g.add(op, [g.value(dtypes or allowed(op), calm=calm, new=new)], **{k: draw(g) for k, draw in attributes.items()})


def like(g, value, dtypes=None, **how):
    """A shape that broadcasts with the value's."""
    shape = [1 if g.chance(0.25) else size for size in value.shape]
    if shape and g.chance(0.25):
        shape = shape[g.rng.integers(len(shape) + 1):]
    return g.value(dtypes or [value.array.dtype], shape=tuple(shape), **how)


def binary(op, **attributes):
    def make(g):
        first = g.value(allowed(op))
        pair = [first, like(g, first)]
        g.add(op, pair if g.chance(0.5) else pair[::-1], **{k: draw(g) for k, draw in attributes.items()})
    return make


def division(op):
    """Divisors are not 0 where the type has no quotient for it, and the quotient is in the type."""
    def make(g):
        first = g.value([d for d in allowed(op) if op == "Div" or d.itemsize != 2 or d in INTEGERS])
        second = like(g, first)
        if first.array.dtype in INTEGERS:
            a, b = np.broadcast_arrays(first.array, second.array)
            if np.any(b == 0) or np.any((b == -1) & (a == np.iinfo(a.dtype).min) & (a.dtype in SIGNED)):
                raise Rejected(op)
        remainder = {} if op == "Div" else {"fmod": int(first.array.dtype not in INTEGERS or g.chance(0.5))}
        g.add(op, [first, second], **remainder)
    return make


def power(g):
    x = g.value(allowed("Pow"))
    y = like(g, x)
    if x.array.dtype in INTEGERS and np.any(y.array < 0):
        raise Rejected("an integer to a negative power")
    g.add("Pow", [x, y])


def variadic(op):
    def make(g):
        first = g.value(allowed(op))
        g.add(op, [first] + [like(g, first) for _ in range(g.rng.integers(0, 4))])
    return make


def axis_of(g, rank):
    return int(g.rng.integers(-rank, rank)) if rank else 0


def axes_of(g, rank):
    count = int(g.rng.integers(0, rank + 1))
    return [int(a) - (rank if g.chance(0.3) else 0) for a in g.rng.permutation(rank)[:count]]


def reduction(op, dtypes=None):
    def make(g):
        x = g.value(dtypes or allowed(op))
        # Integers that do not fit wrap around here, and saturate or become floats in a peer.
        if op not in ("ReduceMax", "ReduceMin") and x.array.size and np.abs(x.array.astype(np.float64)).max() > 1e4 and x.array.dtype in INTEGERS:
            raise Rejected(op)
        axes = axes_of(g, x.rank)
        rest = [g.known(axes)] if axes or g.chance(0.3) else []
        g.add(op, [x] + rest, keepdims=int(g.chance(0.5)), noop_with_empty_axes=int(g.chance(0.3)))
    return make


def arg(op):
    def make(g):
        x = g.value(allowed(op), rank=range(1, 6), calm=True)
        if x.array.size == 0:
            raise Rejected(op)
        g.add(op, [x], axis=axis_of(g, x.rank), keepdims=int(g.chance(0.5)), select_last_index=int(g.chance(0.3)))
    return make


def along(op):
    def make(g):
        x = g.value(allowed(op), rank=range(1, 6), calm=True)
        g.add(op, [x], axis=axis_of(g, x.rank))
    return make


def top_k(g):
    x = g.value(allowed("TopK"), rank=range(1, 6), calm=True)
    axis = axis_of(g, x.rank)
    g.add("TopK", [x, g.known([g.rng.integers(0, x.shape[axis] + 1)])], 2, axis=axis, largest=int(g.chance(0.5)), sorted=1)


def cumulative(op):
    def make(g):
        x = g.value(allowed(op), rank=range(1, 6))
        g.add(op, [x, g.known(axis_of(g, x.rank))], exclusive=int(g.chance(0.3)), reverse=int(g.chance(0.3)))
    return make


def cast(g):
    x = g.value(ANY)
    to = g.one_of(ANY)
    if x.array.dtype in FLOATS and to in INTEGERS:
        limits, wide = np.iinfo(to), x.array.astype(np.float64)
        if not np.all(np.isfinite(wide) & (wide > limits.min * 0.99 - 0.5) & (wide < limits.max * 0.99)):
            raise Rejected("Cast of what the type does not hold")
    if g.chance(0.7):
        g.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to))
    else:
        g.add("CastLike", [x, g.value([to])])


def clip(g):
    x = g.value(allowed("Clip"))
    low, high = sorted([g.array(x.array.dtype, ()), g.array(x.array.dtype, ())], key=float)
    g.add("Clip", [x, g.fresh(low, g.chance(0.7)), g.fresh(high, g.chance(0.7))])


def where(g):
    x = g.value(ANY)
    g.add("Where", [like(g, x, BOOL), x, like(g, x)])


def shift(g):
    x = g.value(UNSIGNED)
    bits = g.rng.integers(0, x.array.dtype.itemsize * 8, x.shape).astype(x.array.dtype)
    g.add("BitShift", [x, g.fresh(bits)], direction=g.one_of(["LEFT", "RIGHT"]))


def matmul(op="MatMul", dtypes=None):
    def make(g):
        a = g.value(dtypes or WHOLE, rank=range(1, 5))
        inner, b = a.shape[-1], None
        if g.chance(0.3):
            b = g.value([a.array.dtype], shape=(inner,))
        else:
            b = g.value([a.array.dtype], shape=tuple(a.shape[:-2]) * int(g.chance(0.5)) + (inner, g.shape(1)[0]))
        g.add(op, [a, b])
    return make


def gemm(g):
    a = g.value(FULL, rank=2, calm=True)
    turned, across = g.chance(0.4), g.chance(0.4)
    rows, inner = a.shape[::-1] if turned else a.shape
    columns = g.shape(1)[0]
    b = g.value([a.array.dtype], shape=(columns, inner) if across else (inner, columns), calm=True)
    rest = [g.value([a.array.dtype], shape=g.one_of([(), (columns,), (rows, 1), (rows, columns)]))] if g.chance(0.6) else []
    scale = dict(alpha=0.5, beta=2.0) if a.array.dtype in FLOATS and g.chance(0.5) else {}
    g.add("Gemm", [a, b] + rest, transA=int(turned), transB=int(across), **scale)


def einsum(g):
    a = g.value(WIDE, rank=3)
    equation, shape = g.one_of([("abc,acd->abd", (a.shape[0], a.shape[2], 3)), ("abc,abc->ab", a.shape),
                                ("abc,dc->bad", (2, a.shape[2])), ("abc,c->", (a.shape[2],)), ("abc->cb", None)])
    g.add("Einsum", [a] + ([g.value([a.array.dtype], shape=shape)] if shape is not None else []), equation=equation)


# Norms compute their statistics in float32, by the letter of stash_type, where the peers take float64.
STASHED = [d for d in FULL if d != np.float64]


def normalization(op, *parts):
    """Norms over the channels: scale, bias and what else is of their shape."""
    def make(g):
        x = g.value(STASHED, rank=range(3, 5), calm=True)
        if x.array.size == 0:
            raise Rejected(op)
        channels = [g.value([x.array.dtype], shape=(x.shape[1],), calm=True) for _ in parts]
        g.add(op, [x] + channels, **({"num_groups": int(g.one_of([d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0]))}
                                     if op == "GroupNormalization" else {}))
    return make


def batch_normalization(g):
    x = g.value(FULL, rank=range(2, 5), calm=True)
    channels = [g.value([x.array.dtype], shape=(x.shape[1],)) for _ in range(3)]
    g.add("BatchNormalization", [x] + channels + [g.fresh(np.abs(g.array(x.array.dtype, (x.shape[1],), False)) + x.array.dtype.type(0.1))])


def layer_normalization(op):
    def make(g):
        x = g.value(STASHED, rank=range(1, 5), calm=True)
        if x.array.size == 0:
            raise Rejected(op)
        axis = int(g.rng.integers(x.rank))
        scale = g.value([x.array.dtype], shape=x.shape[axis:])
        bias = [g.value([x.array.dtype], shape=x.shape[axis:])] if op == "LayerNormalization" and g.chance(0.6) else []
        g.add(op, [x, scale] + bias, axis=axis - (x.rank if g.chance(0.5) else 0))
    return make


def images(g, dtypes, most=2):
    return g.value(dtypes, shape=(int(g.one_of((1, 2))), int(g.one_of((1, 2, 4)))) + tuple(int(g.rng.integers(5, 9)) for _ in range(g.rng.integers(1, most + 1))), calm=True)


def windows(g, spatial):
    pads = [int(g.rng.integers(0, 2)) for _ in range(2 * spatial)]
    return dict(strides=[int(g.one_of((1, 2))) for _ in range(spatial)], pads=pads)


def conv(op):
    def make(g):
        x = images(g, SINGLE if op != "ConvInteger" else [np.dtype("uint8")])
        spatial, channels = x.rank - 2, x.shape[1]
        group = int(g.one_of([1, channels]))
        kernel = [int(g.one_of(POSITIVE)) for _ in range(spatial)]
        out = 2 * group
        shape = (channels, out // group) if op == "ConvTranspose" else (out, channels // group)
        w = g.value([x.array.dtype], shape=shape + tuple(kernel), calm=True)
        bias = [g.value(SINGLE, shape=(out,))] if op != "ConvInteger" and g.chance(0.5) else []
        g.add(op, [x, w] + bias, group=group, kernel_shape=kernel, dilations=[int(g.one_of((1, 2))) if op != "ConvTranspose" else 1] * spatial, **windows(g, spatial))
    return make


def pool(op):
    def make(g):
        x = images(g, SINGLE)
        kernel = [int(g.one_of((2, 3))) for _ in range(x.rank - 2)]
        more = {"count_include_pad": int(g.chance(0.5))} if op == "AveragePool" else {"p": int(g.one_of((1, 2, 3)))} if op == "LpPool" else {}
        g.add(op, [x], kernel_shape=kernel, ceil_mode=int(g.chance(0.3)), **more, **windows(g, x.rank - 2))
    return make


def quantize(g):
    x = g.value(SINGLE + [np.dtype("float16")], calm=True, new=True)
    zero = g.fresh(g.array(g.one_of([np.dtype("uint8"), np.dtype("int8"), np.dtype("int16"), np.dtype("uint16")]), ()), True)
    g.add("QuantizeLinear", [x, g.fresh(np.asarray(g.one_of((0.1, 0.5, 0.037)), x.array.dtype), True), zero])


def dequantize(g):
    x = g.value([np.dtype(t) for t in ("uint8", "int8", "int16", "uint16")])
    g.add("DequantizeLinear", [x, g.fresh(np.asarray(0.25, g.one_of(["float32", "float16"])), True), g.fresh(g.array(x.array.dtype, ()), True)])


def attention(g):
    batch, heads, shared, size, keys = (int(g.one_of((1, 2))) for _ in range(5))
    queries, dtype = int(g.one_of((1, 3, 5))), [g.one_of(STASHED)]
    keys, size = keys * 3, size * 4
    q = g.value(dtype, shape=(batch, heads * shared, queries, size), calm=True)
    k, v = g.value(dtype, shape=(batch, heads, keys, size), calm=True), g.value(dtype, shape=(batch, heads, keys, size), calm=True)
    # A row without a key is NaN in one peer and zero in the other: all see the first.
    mask = [g.fresh(np.arange(keys) < g.rng.integers(1, keys + 1, (queries, 1)))] if g.chance(0.4) else []
    g.add("Attention", [q, k, v] + mask, is_causal=int(g.chance(0.4)), **({"softcap": 2.0} if g.chance(0.3) else {}))


def recurrent(op, gates):
    def make(g):
        x = g.value(SINGLE, shape=(3, 2, 4), calm=True)
        ways = g.one_of([("forward", 1), ("reverse", 1), ("bidirectional", 2)])
        w, r = g.value(SINGLE, shape=(ways[1], gates * 3, 4), calm=True), g.value(SINGLE, shape=(ways[1], gates * 3, 3), calm=True)
        g.add(op, [x, w, r], 2 if op != "LSTM" else 3, hidden_size=3, direction=ways[0])
    return make


def loss(op):
    def make(g):
        scores = g.value(FULL, shape=(3, 4) + g.one_of([(), (2,), (2, 2)]))
        target = g.fresh(g.rng.integers(0, 4, scores.shape[:1] + scores.shape[2:]).astype(g.one_of(["int32", "int64"])))
        weights = [g.value([scores.array.dtype], shape=(4,))] if g.chance(0.3) else []
        g.add(op, [scores, target] + weights, reduction=g.one_of(["none", "mean", "sum"]))
    return make


def number(low, high):
    return lambda g: float(np.round(g.rng.uniform(low, high), 3))


PLAIN = ("Abs Asinh Atan Cos Cosh Exp Identity IsNaN Log Neg Not Relu Sigmoid "
         "Sin Sinh Softsign Sqrt Tanh HardSwish Mish BitwiseNot Size Shape IsInf").split()
PAIRS = "Add Sub Mul Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor PRelu".split()
# Steps of 16-bit floats are not compared: the peers round between nodes.
STEPS = "Ceil Floor Round Sign".split()
# Small differences of their inputs grow without bound near a pole.
STEEP = "Acos Acosh Asin Atanh Reciprocal Tan".split()
REDUCTIONS = "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
MAKERS = {
    **{op: unary(op) for op in PLAIN}, **{op: binary(op) for op in PAIRS}, **{op: reduction(op) for op in REDUCTIONS},
    **{op: unary(op, WIDE, new=True) for op in STEEP}, **{op: reduction(op, FLOATS) for op in ("ReduceLogSum", "ReduceLogSumExp")},
    **{op: variadic(op) for op in "Sum Mean Max Min".split()}, **{op: division(op) for op in ("Div", "Mod")},
    **{op: arg(op) for op in ("ArgMax", "ArgMin")}, **{op: along(op) for op in "Softmax LogSoftmax Hardmax LpNormalization".split()},
    # The reference computes it in float32.
    "Erf": unary("Erf", STASHED),
    "Softplus": unary("Softplus", calm=True), **{op: unary(op, WIDE) for op in STEPS},
    "Elu": unary("Elu", alpha=number(0.1, 2)), "Celu": unary("Celu", calm=True, alpha=number(0.1, 2)), "Selu": unary("Selu"),
    "LeakyRelu": unary("LeakyRelu", alpha=number(-1, 1)), "HardSigmoid": unary("HardSigmoid", alpha=number(0, 1)),
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=number(0, 1)), "Shrink": unary("Shrink", FLOATS, lambd=number(0, 1), bias=number(0, 1)),
    "Gelu": unary("Gelu", STASHED, approximate=lambda g: g.one_of(["none", "tanh"])), "Pow": power, "TopK": top_k, "CumSum": cumulative("CumSum"),
    "Cast": cast, "Clip": clip, "Where": where, "BitShift": shift, "MatMul": matmul(), "MatMulInteger": matmul("MatMulInteger", [np.dtype("uint8"), np.dtype("int8")]),
    "Gemm": gemm, "Einsum": einsum, "InstanceNormalization": normalization("InstanceNormalization", "scale", "bias"),
    "GroupNormalization": normalization("GroupNormalization", "scale", "bias"), "BatchNormalization": batch_normalization,
    "LayerNormalization": layer_normalization("LayerNormalization"), "RMSNormalization": layer_normalization("RMSNormalization"),
    "MeanVarianceNormalization": lambda g: g.add("MeanVarianceNormalization", [g.value(allowed("MeanVarianceNormalization"), rank=4)]),
    "LRN": lambda g: g.add("LRN", [images(g, SINGLE)], size=int(g.one_of((1, 3)))), **{op: conv(op) for op in "Conv ConvTranspose ConvInteger".split()},
    **{op: pool(op) for op in "MaxPool AveragePool LpPool".split()}, "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
    **{op: (lambda op: lambda g: g.add(op, [g.value(SINGLE, rank=range(3, 5), calm=True)]))(op) for op in ("GlobalAveragePool", "GlobalMaxPool")},
    "Det": lambda g: g.add("Det", [g.value(WIDE, calm=True, shape=g.shape(g.one_of((0, 1, 2))) + (3, 3))]),
    "DynamicQuantizeLinear": lambda g: g.add("DynamicQuantizeLinear", [g.value(SINGLE, shape=(3, 5), calm=True, new=True)], 3), "Attention": attention,
    "RNN": recurrent("RNN", 1), "GRU": recurrent("GRU", 3), "LSTM": recurrent("LSTM", 4),
    **{op: loss(op) for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
}
