"""Nodes of random graphs that move elements: shapes, slices, gathers, scatters."""

import numpy as np

from random_draw import BOOL, INTEGERS, NUMBERS, Rejected
from random_operators import ANY, SINGLE, WIDE, axes_of, axis_of


def reshape(g):
    x = g.value(ANY)
    size, target = x.array.size, []
    rest = size
    while rest > 1 and len(target) < 5 and g.chance(0.8):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        target.append(int(g.one_of(divisors)))
        rest //= target[-1]
    target.append(rest)
    if size and g.chance(0.4):
        target[g.rng.integers(len(target))] = -1
    g.add("Reshape", [x, g.known(target)], allowzero=int(size == 0))


def squeeze(g):
    x = g.value(ANY)
    ones = [a for a, size in enumerate(x.shape) if size == 1]
    g.add("Squeeze", [x] + ([g.known([a - x.rank * int(g.chance(0.3)) for a in ones])] if ones and g.chance(0.6) else []))


def unsqueeze(g):
    x = g.value(ANY, rank=range(0, 4))
    count = int(g.rng.integers(1, 3))
    g.add("Unsqueeze", [x, g.known(g.rng.permutation(x.rank + count)[:count])])


def transpose(g):
    x = g.value(ANY)
    g.add("Transpose", [x], perm=[int(a) for a in g.rng.permutation(x.rank)])


def concat(g):
    x = g.value(ANY, rank=range(1, 5))
    axis = axis_of(g, x.rank)
    others = []
    for _ in range(g.rng.integers(0, 3)):
        shape = list(x.shape)
        shape[axis] = g.shape(1)[0]
        others.append(g.value([x.array.dtype], shape=shape))
    g.add("Concat", [x] + others, axis=axis)


def split(g):
    x = g.value(ANY, rank=range(1, 5))
    axis = axis_of(g, x.rank)
    parts = int(g.rng.integers(1, 4))
    if g.chance(0.5):
        cuts = np.sort(g.rng.integers(0, x.shape[axis] + 1, parts - 1))
        g.add("Split", [x, g.known(np.diff([0, *cuts, x.shape[axis]]))], parts, axis=axis)
    else:
        g.add("Split", [x], parts, axis=axis, num_outputs=parts)


def slices(g):
    x = g.value(ANY, rank=range(1, 5))
    axes = axes_of(g, x.rank) or [0]
    starts, ends = (g.rng.integers(-9, 10, len(axes)) for _ in range(2))
    steps = [int(g.one_of((1, 1, 2, -1, -2, 7))) for _ in axes]
    kind = g.one_of([np.int32, np.int64])
    g.add("Slice", [x] + [g.known(items, kind) for items in (starts, ends, axes, steps)])


def positions(g, size, shape):
    if size == 0 and np.prod(shape, dtype=int):
        raise Rejected("no position in an empty dimension")
    return g.fresh(np.asarray(g.rng.integers(-size, max(size, 1), shape), g.one_of([np.int32, np.int64])), known=g.chance(0.3))


def gather(g):
    x = g.value(ANY, rank=range(1, 5))
    axis = axis_of(g, x.rank)
    g.add("Gather", [x, positions(g, x.shape[axis], g.shape(int(g.rng.integers(0, 3))))], axis=axis)


def gather_elements(g):
    x = g.value(ANY, rank=range(1, 5))
    axis = axis_of(g, x.rank)
    shape = [int(g.rng.integers(0 if g.empty else 1, s + 1)) if s else 0 for s in x.shape]
    g.add("GatherElements", [x, positions(g, x.shape[axis], shape)], axis=axis)


def gather_nd(g):
    x = g.value(ANY, rank=range(1, 4))
    depth = int(g.rng.integers(1, x.rank + 1))
    if 0 in x.shape[:depth]:
        raise Rejected("GatherND")
    places = np.stack([g.rng.integers(-s, s, (3,)) for s in x.shape[:depth]], axis=-1)
    g.add("GatherND", [x, g.fresh(places.astype(np.int64))])


def scatter_elements(g):
    x = g.value(NUMBERS, rank=range(1, 4))
    axis = int(g.rng.integers(x.rank))
    if x.array.size == 0:
        raise Rejected("ScatterElements")
    shape = list(x.shape)
    places = np.argsort(g.rng.random(shape), axis=axis)
    g.add("ScatterElements", [x, g.fresh(places.astype(np.int64)), g.value([x.array.dtype], shape=shape)], axis=axis,
          reduction=g.one_of(["none", "add", "mul", "max", "min"]))


def scatter_nd(g):
    x = g.value(NUMBERS, rank=range(1, 4))
    if x.shape[0] == 0:
        raise Rejected("ScatterND")
    rows = g.rng.permutation(x.shape[0])[:2].reshape(-1, 1)
    g.add("ScatterND", [x, g.fresh(rows.astype(np.int64)), g.value([x.array.dtype], shape=(len(rows),) + x.shape[1:])],
          reduction=g.one_of(["none", "add", "mul", "max", "min"]))


def tile(g):
    x = g.value(ANY, rank=range(1, 4))
    g.add("Tile", [x, g.known(g.rng.integers(0 if g.empty else 1, 3, x.rank))])


def expand(g):
    x = g.value(ANY, rank=range(0, 4))
    target = [int(g.one_of((1, 2, 3))) if s == 1 else s for s in x.shape]
    g.add("Expand", [x, g.known([2] * int(g.chance(0.3)) + target)])


def pad(g):
    x = g.value(ANY, rank=range(1, 4))
    mode = g.one_of(["constant", "edge", "reflect", "wrap"])
    if mode != "constant" and 0 in x.shape:
        raise Rejected("Pad of an empty dimension")
    low = 0 if mode != "constant" else -1
    pads = [int(g.rng.integers(low if s > 2 else 0, max(1, min(s, 3)))) for s in x.shape * 2]
    value = [g.fresh(g.array(x.array.dtype, ()), True)] if mode == "constant" and g.chance(0.6) else []
    g.add("Pad", [x, g.known(pads)] + value, mode=mode)


def trilu(g):
    x = g.value(ANY, rank=range(2, 5))
    g.add("Trilu", [x] + ([g.known(g.rng.integers(-4, 5))] if g.chance(0.6) else []), upper=int(g.chance(0.5)))


def one_hot(g):
    x = g.value([np.dtype(np.int64), np.dtype(np.int32)], rank=range(0, 3))
    x = g.fresh(np.clip(x.array, -5, 4))
    values = g.fresh(np.array([0, 1], g.one_of(["float32", "int64"])), True)
    g.add("OneHot", [x, g.known(5), values], axis=int(g.rng.integers(-x.rank - 1, x.rank + 1)))


def blocks(op):
    def make(g):
        x = g.value(SINGLE, shape=(1, 8, 2, 4))
        g.add(op, [x], blocksize=2, **({"mode": g.one_of(["DCR", "CRD"])} if op == "DepthToSpace" else {}))
    return make


def reverse(g):
    x = g.value(ANY, rank=range(2, 4))
    time = int(g.rng.integers(2))
    lengths = g.rng.integers(min(1, x.shape[time]), x.shape[time] + 1, x.shape[1 - time])
    g.add("ReverseSequence", [x, g.fresh(lengths.astype(np.int64))], time_axis=time, batch_axis=1 - time)


def resize(g):
    x = g.value(SINGLE, calm=True, shape=(1, 2, int(g.rng.integers(2, 6)), int(g.rng.integers(2, 6))))
    sizes = [1, 2, int(g.rng.integers(1, 9)), int(g.rng.integers(1, 9))]
    g.add("Resize", [x, None, None, g.known(sizes)], mode=g.one_of(["nearest", "linear", "cubic"]),
          coordinate_transformation_mode=g.one_of(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]))


def sequence(g):
    start, limit = (int(g.rng.integers(-5, 9)) for _ in range(2))
    kind = g.one_of(["int32", "int64", "float32"])
    g.add("Range", [g.fresh(np.asarray(v, kind), g.chance(0.5)) for v in (start, limit, g.one_of((1, 2, -1, 3)))])


LAYOUTS = {
    "Reshape": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slices,
    "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements, "ScatterND": scatter_nd,
    "Tile": tile, "Expand": expand, "Pad": pad, "Trilu": trilu, "OneHot": one_hot, "ReverseSequence": reverse, "Resize": resize, "Range": sequence,
    "Flatten": lambda g: (lambda x: g.add("Flatten", [x], axis=int(g.rng.integers(-x.rank, x.rank + 1))))(g.value(ANY)),
    "DepthToSpace": blocks("DepthToSpace"), "SpaceToDepth": blocks("SpaceToDepth"),
    "EyeLike": lambda g: g.add("EyeLike", [g.value(SINGLE, rank=2)], k=int(g.rng.integers(-3, 4))),
    "NonZero": lambda g: g.add("NonZero", [g.value(ANY, rank=range(1, 5))]),
    "ConstantOfShape": lambda g: g.add("ConstantOfShape", [g.known(g.shape())]),
    "Compress": lambda g: (lambda x: g.add("Compress", [x, g.value(BOOL, shape=(x.shape[0],))], axis=0))(g.value(ANY, rank=range(1, 4))),
    "Unique": lambda g: g.add("Unique", [g.value([np.dtype(t) for t in ("float32", "int64", "int8")], rank=1, calm=True)], 4, sorted=1),
}
