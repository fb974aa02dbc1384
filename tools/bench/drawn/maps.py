"""Graphs without reductions, or with windows: moves, rotations, gathers, broadcasts, pools and images."""

import math

from cascades import gelu, layer_norm, silu
from drawing import Drawing


def _slice(g, x, start, end, axis, step=1):
    return g.add("Slice", x, *(g.integers([value]) for value in (start, end, axis, step)))


def _permuted(g, sizes_of, random, elements):
    rank = random.randint(2, 5)
    sizes = sizes_of.tensor(rank, elements)
    perm = random.sample(range(rank), rank)
    y = g.add("Transpose", g.input(sizes), perm=perm)
    if random.random() < 0.5:
        y = g.add("Add", y, g.input([sizes[axis] for axis in perm]))
    return [*sizes, "".join(map(str, perm))], y


def _rotated(g, sizes_of, random, elements):
    heads, columns = random.choice([8, 12, 32]), random.choice([64, 128])
    batch, half = sizes_of.between(1, 8), columns // 2
    positions = sizes_of.between(2, max(4, elements // (batch * heads * columns)))
    x = g.input([batch, positions, heads, columns])
    cosine, sine = g.input([positions, 1, half]), g.input([positions, 1, half])
    interleaved = random.random() < 0.5
    if interleaved:
        a, b = _slice(g, x, 0, columns, 3, 2), _slice(g, x, 1, columns, 3, 2)
    else:
        a, b = _slice(g, x, 0, half, 3), _slice(g, x, half, columns, 3)
    a, b = (g.add("Sub", g.add("Mul", a, cosine), g.add("Mul", b, sine)),
            g.add("Add", g.add("Mul", a, sine), g.add("Mul", b, cosine)))
    if interleaved:
        pairs = g.add("Concat", g.add("Unsqueeze", a, g.integers([4])), g.add("Unsqueeze", b, g.integers([4])), axis=4)
        y = g.add("Reshape", pairs, g.integers([batch, positions, heads, columns]))
    else:
        y = g.add("Concat", a, b, axis=3)
    if random.random() < 0.6:
        y = g.add("Transpose", y, perm=[0, 2, 1, 3])
    return [batch, positions, heads, columns, "pairs" if interleaved else "halves"], y


def _joined(g, sizes_of, random, elements):
    sizes, axis, parts = sizes_of.tensor(3, elements // 4), random.randrange(3), []
    for _ in range(random.randint(2, 4)):
        part = list(sizes)
        part[axis] = sizes_of.between(1, max(2, sizes[axis]))
        parts.append(g.input(part))
    return [*sizes, axis], g.add("Relu", g.add("Concat", *parts, axis=axis))


def _image(sizes_of, elements, channels, batch=16, smallest=14):
    """Sizes of images of at most so many elements."""
    sizes = [sizes_of.between(1, batch), sizes_of.between(*channels), sizes_of.between(smallest, 224),
             sizes_of.between(smallest, 224)]
    while math.prod(sizes) > elements and sizes[:2] != [1, channels[0]]:
        sizes[0], sizes[1] = max(1, sizes[0] // 2), max(channels[0], sizes[1] // 2)
    return sizes


def _shuffled(g, sizes_of, random, elements):
    block = random.choice([2, 4])
    batch, channels, height, width = _image(sizes_of, elements // block**2, (3, 64), 8)
    x = g.input([batch, channels * block**2, height, width])
    return [batch, channels, height, width, block], g.add("DepthToSpace", x, blocksize=block, mode="CRD")


def _gathered(g, sizes_of, random, elements):
    columns = sizes_of.between(16, 4096)
    rows, places = (sizes_of.between(16, max(32, elements // columns)) for _ in range(2))
    y = g.add("Gather", g.input([rows, columns]), g.input([places], "i64", f"below {rows}"), axis=0)
    if random.random() < 0.5:
        y = g.add("Add", y, g.input([places, columns]))
        y = g.add("Mul", layer_norm(g, y, [-1]), g.input([columns]))
    return [rows, columns, places], g.add("Mul", y, g.constant(3.0))


def _gated(g, sizes_of, random, elements):
    columns = sizes_of.between(64, 8192)
    rows = sizes_of.between(1, max(2, elements // (2 * columns)))
    a, b = g.add("Split", g.input([rows, 2 * columns]), results=2, axis=1, num_outputs=2)
    return [rows, columns], g.add("Mul", random.choice([silu, gelu])(g, a), b)


def _outer(g, sizes_of, random, elements):
    sizes, y = sizes_of.tensor(3, elements), None
    for axis, size in enumerate(sizes):
        part = g.input([size if i == axis else 1 for i in range(3)])
        y = g.add("Mul", y, part) if y else part
    return sizes, g.add("Tanh", y)


def _windows(g, sizes_of, random, elements):
    channels, side = random.choice([96, 128, 192]), random.choice([7, 14, 28, 56])
    batch = sizes_of.between(1, max(2, min(32, elements // (channels * side * side))))
    n = side // 7
    x = g.add("Reshape", g.input([batch, side, side, channels]), g.integers([batch, n, 7, n, 7, channels]))
    x = g.add("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
    x = g.add("Reshape", x, g.integers([batch * n * n, 49, channels]))
    return [batch, side, channels], g.add("Mul", layer_norm(g, x, [-1]), g.input([channels]))


def _one_hot(g, sizes_of, random, elements):
    columns = sizes_of.between(8, 1024)
    rows = sizes_of.between(8, max(16, elements // columns))
    hot = g.add("Equal", g.input([rows, 1], "i64", f"below {columns}"), g.integers([list(range(columns))]))
    return [rows, columns], g.add("Mul", g.add("Cast", hot, to=g.dtype), g.input([rows, columns]))


def _padded(g, sizes_of, random, elements):
    sizes = _image(sizes_of, elements, (3, 128))
    mode = random.choice(["constant", "reflect", "edge"])
    return [*sizes, mode], g.add("Pad", g.input(sizes), g.integers([0, 0, 1, 1, 0, 0, 1, 2]), mode=mode)


def _mean_of_four(g, sizes_of, random, elements):
    sizes = sizes_of.tensor(2, elements // 4)
    parts = [g.add("Unsqueeze", g.input(sizes), g.integers([0])) for _ in range(4)]
    return sizes, g.add("ReduceMean", g.add("Concat", *parts, axis=0), g.integers([0]), keepdims=0)


def _pooled(g, sizes_of, random, elements):
    sizes, window = _image(sizes_of, elements, (3, 256), 32), random.choice([2, 3, 3, 5, 7])
    operator = random.choice(["AveragePool", "MaxPool"])
    y = g.add(operator, g.input(sizes), kernel_shape=[window] * 2, strides=random.choice([[1, 1], [2, 2]]),
              pads=[window // 2] * 4)
    return [*sizes, window, operator], y


def _enlarged(g, sizes_of, random, elements):
    batch, channels, height, width = _image(sizes_of, elements // 4, (3, 64), 8)
    to = g.integers([batch, channels, 2 * height, 2 * width])
    mode = random.choice(["nearest", "linear"])
    y = g.add("Resize", g.input([batch, channels, height, width]), "", "", to, mode=mode,
              coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor")
    return [batch, channels, height, width, mode], y


def _patches(g, sizes_of, random, elements):
    side = random.choice([56, 112, 224])
    patch = random.choice([4, 7, 8, 14])
    batch, n = sizes_of.between(1, max(2, min(32, elements // (3 * side * side)))), side // patch
    x = g.add("Reshape", g.input([batch, 3, side, side]), g.integers([batch, 3, n, patch, n, patch]))
    x = g.add("Transpose", x, perm=[0, 2, 4, 3, 5, 1])
    return [batch, side, patch], g.add("Reshape", x, g.integers([batch, n * n, patch * patch * 3]))


KINDS = {"permuted": _permuted, "rotated": _rotated, "joined": _joined, "shuffled": _shuffled, "gathered": _gathered,
         "gated": _gated, "outer": _outer, "windows": _windows, "one_hot": _one_hot, "padded": _padded,
         "mean_of_four": _mean_of_four, "pooled": _pooled, "enlarged": _enlarged, "patches": _patches}


def draw(sizes_of, random, elements):
    g = Drawing(random.choice(["f16", "f16", "f32"]))
    kind = random.choice(list(KINDS))
    parts, y = KINDS[kind](g, sizes_of, random, elements)
    return "_".join(["map", kind, *map(str, parts), g.dtype]), g, {y: g.dtype}
