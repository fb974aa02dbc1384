"""Graphs of products: one with what comes before and after it, and feed-forward layers."""

from cascades import gelu, layer_norm, rms_norm, silu, softmax
from drawing import Drawing


def _before(g, x, kind, sizes):
    if kind == "rms":
        return g.add("Mul", rms_norm(g, x, [-1]), g.input(sizes[-1:]))
    if kind == "layer":
        return g.add("Add", g.add("Mul", layer_norm(g, x, [-1]), g.input(sizes[-1:])), g.input(sizes[-1:]))
    if kind == "gate":
        return g.add("Mul", silu(g, x), g.input(sizes))
    return x


def _after(g, y, kind, sizes, x, inner):
    rank, columns = len(sizes), sizes[-1]
    if kind.startswith("bias"):
        y = g.add("Add", y, g.input([columns]))
    if kind == "bias_gelu":
        return gelu(g, y)
    if kind == "bias_relu":
        return g.add("Relu", y)
    if kind in ("sum", "bias_sum"):
        return g.add("Add", y, g.input(sizes))
    if kind == "softmax":
        return softmax(g, y, [rank - 1])
    if kind == "max":
        return g.add("ReduceMax", y, g.integers([rank - 1]), keepdims=0)
    if kind == "norm":
        return g.add("Mul", rms_norm(g, g.add("Add", y, g.input(sizes)), [-1]), g.input([columns]))
    if kind == "gated":
        return g.add("Mul", silu(g, y), g.add("MatMul", x, g.weight([inner, columns])))
    if kind == "heads" and rank == 2 and columns % 8 == 0:
        heads = g.add("Reshape", y, g.integers([1, sizes[0], 8, columns // 8]))
        return g.add("Transpose", heads, perm=[0, 2, 1, 3])
    return y


BEFORE = ["", "", "", "rms", "layer", "gate"]
AFTER = ["", "bias", "bias_gelu", "bias_relu", "sum", "bias_sum", "softmax", "max", "gated", "norm", "heads"]


def draw(sizes_of, random, elements):
    g = Drawing(random.choice(["f16", "f16", "bf16", "f32"]))
    limit = int(elements**0.5) * (1 if g.dtype == "f32" else 2)
    rows, inner, columns = (sizes_of.between(low, max(limit, low)) for low in (1, 32, 8))
    batch = [sizes_of.between(2, 32)] if random.random() < 0.2 else []
    while batch and batch[0] * rows * max(inner, columns) > elements:
        rows = max(1, rows // 2)
        if rows == 1:
            break
    before, after = random.choice(BEFORE), random.choice(AFTER)
    x = _before(g, g.input(batch + [rows, inner]), before, batch + [rows, inner])
    of_batch = batch if random.random() < 0.7 else []
    if random.random() < 0.3:
        rank = len(of_batch)
        perm = list(range(rank)) + [rank + 1, rank]
        weight = g.add("Transpose", g.weight(of_batch + [columns, inner]), perm=perm)
    else:
        weight = g.weight(of_batch + [inner, columns])
    y = _after(g, g.add("MatMul", x, weight), after, batch + [rows, columns], x, inner)
    sizes = "x".join(map(str, batch + [rows, inner, columns]))
    return "_".join(filter(None, ["product", sizes, before, after, g.dtype])), g, {y: g.dtype}


def draw_feed_forward(sizes_of, random, elements):
    g = Drawing(random.choice(["f16", "bf16"]))
    width = random.choice([w for w in (256, 512, 768, 1024, 2048, 4096) if w <= elements**0.5] or [64])
    inner = random.choice([1, 2, 3, 4]) * width
    rows = sizes_of.between(1, max(2, min(2048, elements // inner)))
    gated, normed = random.random() < 0.5, random.random() < 0.5
    x = g.input([rows, width])
    h = _before(g, x, "rms" if normed else "", [rows, width])
    a = g.add("MatMul", h, g.weight([width, inner]))
    if gated:
        a = g.add("Mul", silu(g, a), g.add("MatMul", h, g.weight([width, inner])))
    else:
        a = gelu(g, g.add("Add", a, g.input([inner])))
    y = g.add("Add", g.add("MatMul", a, g.weight([inner, width])), x)
    kind = ["feed_forward", f"{rows}x{width}x{inner}", "gated" if gated else "", "normed" if normed else "", g.dtype]
    return "_".join(filter(None, kind)), g, {y: g.dtype}
