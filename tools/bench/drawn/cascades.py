"""Reductions that use each other's results, spelled as exporters do, and graphs of one such cascade over any axes."""

from drawing import Drawing


def root(g, square, epsilon=1e-5):
    return g.add("Sqrt", g.add("Add", square, g.constant(epsilon, "f32")))


def rms_norm(g, x, axes):
    x = g.as_float(x)
    square = g.add("ReduceMean", g.add("Mul", x, x), g.integers(axes), keepdims=1)
    return g.as_drawn(g.add("Div", x, root(g, square)))


def layer_norm(g, x, axes):
    x = g.as_float(x)
    centred = g.add("Sub", x, g.add("ReduceMean", x, g.integers(axes), keepdims=1))
    square = g.add("ReduceMean", g.add("Mul", centred, centred), g.integers(axes), keepdims=1)
    return g.as_drawn(g.add("Div", centred, root(g, square)))


def below_largest(g, x, axes):
    most = g.add("ReduceMax", x, g.integers(axes), keepdims=1)
    return g.add("Sub", x, most)


def softmax(g, x, axes):
    x = g.as_float(x)
    if len(axes) == 1:
        return g.as_drawn(g.add("Softmax", x, axis=axes[0]))
    exponential = g.add("Exp", below_largest(g, x, axes))
    return g.as_drawn(g.add("Div", exponential, g.add("ReduceSum", exponential, g.integers(axes), keepdims=1)))


def gelu(g, x):
    e = g.add("Erf", g.add("Mul", x, g.constant(0.5**0.5)))
    return g.add("Mul", g.add("Mul", x, g.constant(0.5)), g.add("Add", e, g.constant(1.0)))


def silu(g, x):
    return g.add("Mul", x, g.add("Sigmoid", x))


def scaled(g, x, sizes, axes):
    """x by a weight of every element of its row."""
    return g.add("Mul", x, g.input([size if i in axes else 1 for i, size in enumerate(sizes)]))


def _log_softmax(g, x, sizes, axes, random):
    shifted = below_largest(g, g.as_float(x), axes)
    total = g.add("ReduceSum", g.add("Exp", shifted), g.integers(axes), keepdims=1)
    return g.as_drawn(g.add("Sub", shifted, g.add("Log", total))), g.dtype


def _masked_softmax(g, x, sizes, axes, random):
    mask = g.input(sizes if random.random() < 0.5 else [1] * (len(sizes) - 1) + sizes[-1:], "bool", "boolean")
    return softmax(g, g.add("Where", mask, x, g.constant(-30000.0)), axes), g.dtype


def _norm_and_sum(g, x, sizes, axes, random):
    total = g.add("Add", x, g.input(sizes))
    return {gelu(g, layer_norm(g, total, axes)): g.dtype, total: g.dtype}


def _log_sum(g, x, sizes, axes, random):
    return g.add("ReduceLogSumExp", g.as_float(x), g.integers(axes), keepdims=random.randint(0, 1)), "f32"


def _deviation(g, x, sizes, axes, random):
    x = g.as_float(x)
    centred = g.add("Sub", x, g.add("ReduceMean", x, g.integers(axes), keepdims=1))
    square = g.add("ReduceMean", g.add("Mul", centred, centred), g.integers(axes), keepdims=0)
    return g.add("Sqrt", square), "f32"


def _range(g, x, sizes, axes, random):
    least = g.add("ReduceMin", x, g.integers(axes), keepdims=1)
    most = g.add("ReduceMax", x, g.integers(axes), keepdims=1)
    width = g.add("Add", g.add("Sub", most, least), g.constant(1e-3))
    return g.add("Div", g.add("Sub", x, least), width), g.dtype


def _quantised(g, x, sizes, axes, random):
    x = g.as_float(x)
    most = g.add("ReduceMax", g.add("Abs", x), g.integers(axes), keepdims=1)
    scale = g.add("Div", most, g.constant(127.0, "f32"))
    codes = g.add("Cast", g.add("Round", g.add("Div", x, scale)), to="i8")
    return {g.add("Cast", codes, to="f16"): "f16", scale: "f32"}


def _entropy(g, x, sizes, axes, random):
    x, axis = g.as_float(x), axes[0]
    term = g.add("Mul", g.add("Softmax", x, axis=axis), g.add("LogSoftmax", x, axis=axis))
    return g.add("Neg", g.add("ReduceSum", term, g.integers([axis]), keepdims=0)), "f32"


def _unit(g, x, sizes, axes, random):
    x = g.as_float(x)
    square = g.add("ReduceSum", g.add("Mul", x, x), g.integers(axes), keepdims=1)
    length = g.add("Add", g.add("Sqrt", square), g.constant(1e-6, "f32"))
    return g.as_drawn(g.add("Div", x, length)), g.dtype


def _largest(g, x, sizes, axes, random):
    return g.add("Cast", g.add("ArgMax", x, axis=axes[0], keepdims=0), to="f32"), "f32"


def _top(g, x, sizes, axes, random):
    k = min(sizes[axes[0]], random.choice([1, 2, 5, 8, 20, 50, 64]))
    values, places = g.add("TopK", x, g.integers([k]), results=2, axis=axes[0])
    return {values: g.dtype, g.add("Cast", places, to="f32"): "f32"}


def _running_sum(g, x, sizes, axes, random):
    return g.as_drawn(g.add("CumSum", g.as_float(x), g.integers(axes[0]))), g.dtype


def _weighted_mean(g, x, sizes, axes, random):
    weights = softmax(g, x, axes)
    term = g.add("Mul", g.as_float(weights), g.as_float(g.input(sizes)))
    return g.add("ReduceSum", term, g.integers(axes), keepdims=0), "f32"


KINDS = {
    "softmax": lambda g, x, sizes, axes, random: (softmax(g, x, axes), g.dtype),
    "log_softmax": _log_softmax,
    "masked_softmax": _masked_softmax,
    "layer_norm": lambda g, x, sizes, axes, random: (scaled(g, layer_norm(g, x, axes), sizes, axes), g.dtype),
    "norm_and_sum": _norm_and_sum,
    "rms_norm": lambda g, x, sizes, axes, random: (scaled(g, rms_norm(g, x, axes), sizes, axes), g.dtype),
    "norm_softmax": lambda g, x, sizes, axes, random: (softmax(g, rms_norm(g, x, axes), axes), g.dtype),
    "log_sum": _log_sum,
    "deviation": _deviation,
    "range": _range,
    "quantised": _quantised,
    "entropy": _entropy,
    "unit": _unit,
    "largest": _largest,
    "top": _top,
    "running_sum": _running_sum,
    "weighted_mean": _weighted_mean,
}


def draw(sizes_of, random, elements):
    """(name, drawing, outputs) of one cascade over drawn axes of a tensor of at most so many elements."""
    from drawing import Drawing

    g = Drawing(random.choice(["f16", "bf16", "f32"]))
    rank = random.randint(2, 4)
    sizes = sizes_of.tensor(rank, elements)
    axes = sorted(random.sample(range(rank), 1 if random.random() < 0.6 else min(2, rank - 1)))
    if random.random() < 0.4:
        axes = [rank - 1]
    kind = random.choice(list(KINDS))
    x = g.input(sizes)
    before = random.choice(["", "", "bias", "sum", "scale"])
    if before == "bias":
        axis = random.randrange(rank)
        x = g.add("Add", x, g.input([size if i == axis else 1 for i, size in enumerate(sizes)]))
    elif before == "sum":
        x = g.add("Add", x, g.input(sizes))
    elif before == "scale":
        x = g.add("Mul", x, g.constant(0.35))
    results = KINDS[kind](g, x, sizes, axes, random)
    outputs = results if isinstance(results, dict) else {results[0]: results[1]}
    name = "_".join(filter(None, ["row", kind, before, "x".join(map(str, sizes)), "".join(map(str, axes)), g.dtype]))
    return name, g, outputs
