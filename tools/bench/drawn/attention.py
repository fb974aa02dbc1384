"""Graphs of attention: heads that share keys, masks, biases, caps, and scores of two products."""

from cascades import softmax
from drawing import Drawing

KINDS = ["plain", "plain", "causal", "bias", "padding", "window", "cap", "two", "slopes", "from_rows"]
HIDDEN = -30000.0


def _heads(g, kind, batch, positions, heads, columns):
    if kind != "from_rows":
        return g.input([batch, heads, positions, columns])
    rows = g.input([batch, positions, heads * columns])
    parts = g.add("Reshape", rows, g.integers([batch, positions, heads, columns]))
    return g.add("Transpose", parts, perm=[0, 2, 1, 3])


def _repeated(g, x, batch, heads, times, positions, columns):
    if times == 1:
        return x
    wide = g.add("Expand", g.add("Unsqueeze", x, g.integers([2])),
                 g.integers([batch, heads, times, positions, columns]))
    return g.add("Reshape", wide, g.integers([batch, heads * times, positions, columns]))


def _scores(g, kind, scores, sizes, columns, sizes_of, random):
    batch, heads, queries, keys = sizes
    distance = None
    if kind in ("causal", "window", "slopes"):
        distance = g.add("Sub", g.integers([[i + keys - queries] for i in range(queries)]),
                         g.integers([list(range(keys))]))
    if kind == "slopes":
        slope = g.add("Abs", g.add("Mul", g.input([heads, 1, 1]), g.constant(0.05)))
        return g.add("Sub", scores, g.add("Mul", g.add("Abs", g.add("Cast", distance, to=g.dtype)), slope))
    if distance:
        seen = g.add("GreaterOrEqual", distance, g.integers(0))
        if kind == "window":
            width = max(4, sizes_of.between(4, max(8, keys // 2)))
            seen = g.add("And", seen, g.add("Less", distance, g.integers(width)))
        return g.add("Where", seen, scores, g.constant(HIDDEN))
    if kind == "bias":
        of = random.choice([[heads, queries, keys], [batch, 1, queries, keys], [1, heads, queries, keys]])
        return g.add("Add", scores, g.input(of))
    if kind == "padding":
        return g.add("Where", g.input([batch, 1, 1, keys], "bool", "boolean"), scores, g.constant(HIDDEN))
    if kind == "cap":
        return g.add("Mul", g.add("Tanh", g.add("Mul", scores, g.constant(1 / 30))), g.constant(30.0))
    if kind == "two":
        other = g.add("MatMul", g.input([batch, heads, queries, columns]), g.input([1, heads, columns, keys]))
        return g.add("Mul", g.add("Add", scores, other), g.constant(0.1))
    return scores


def draw(sizes_of, random, elements):
    g = Drawing(random.choice(["f16", "f16", "bf16", "f32"]))
    of_keys, times = random.choice([1, 2, 4, 8, 12, 16]), random.choice([1, 1, 1, 2, 4, 8])
    heads, batch = of_keys * times, sizes_of.between(1, 32)
    columns = random.choice([16, 32, 40, 48, 64, 64, 64, 80, 96, 128, 128, 192, 256])
    of_values = columns if random.random() < 0.8 else random.choice([32, 64, 128])
    queries = random.choice([1, 1, 2, 7, 49, 64, 128, 197, 256, 512, 1024, 2048, 4096])
    keys = queries if queries > 7 and random.random() < 0.7 else sizes_of.between(16, 8192)
    while batch * heads * max(queries * keys // 8, (queries + 2 * keys) * columns) > elements:
        if batch > 1:
            batch //= 2
        elif queries > 64:
            queries, keys = queries // 2, max(16, keys // 2)
        elif keys > 16:
            keys //= 2
        else:
            of_keys, heads = 1, times
            break
    kind = random.choice(KINDS)
    q = _heads(g, kind, batch, queries, heads, columns)
    k = _repeated(g, _heads(g, kind, batch, keys, of_keys, columns), batch, of_keys, times, keys, columns)
    v = _repeated(g, _heads(g, kind, batch, keys, of_keys, of_values), batch, of_keys, times, keys, of_values)
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.add("Mul", scores, g.constant(columns**-0.5))
    scores = _scores(g, kind, scores, (batch, heads, queries, keys), columns, sizes_of, random)
    y = g.add("MatMul", softmax(g, scores, [3]), v)
    if kind == "from_rows":
        y = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), g.integers([batch, queries, heads * of_values]))
    name = f"attention_{kind}_b{batch}_h{heads}_{of_keys}_q{queries}_k{keys}_d{columns}_{of_values}_{g.dtype}"
    return name, g, {y: g.dtype}
