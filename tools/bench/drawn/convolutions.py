"""Graphs of a convolution and what follows it."""

from cascades import silu
from drawing import Drawing

AFTER = ["", "relu", "silu", "sum_relu", "hard_swish"]


def draw(sizes_of, random, elements):
    g = Drawing(random.choice(["f16", "f16", "f32"]))
    batch, side = sizes_of.between(1, 32), random.choice([7, 14, 28, 56, 64, 112])
    channels = random.choice([3, 16, 32, 64, 96, 128, 256, 512])
    filters = random.choice([16, 32, 64, 96, 128, 256, 512])
    kernel, stride = random.choice([1, 1, 3, 3, 3, 5, 7]), random.choice([1, 1, 2])
    groups = random.choice([1, 1, 1, 1, channels, 4 if channels % 4 == 0 else 1])
    if groups == channels:
        filters = channels
    while batch * max(channels, filters) * side * side > elements and (batch > 1 or side > 7):
        batch, side = (batch // 2, side) if batch > 1 else (1, side // 2)
    pad = kernel // 2
    y = g.add("Conv", g.input([batch, channels, side, side]), g.weight([filters, channels // groups, kernel, kernel]),
              g.input([filters]), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)
    after, to = random.choice(AFTER), (side + 2 * pad - kernel) // stride + 1
    if after == "sum_relu":
        y = g.add("Add", y, g.input([batch, filters, to, to]))
    if after in ("relu", "sum_relu"):
        y = g.add("Relu", y)
    elif after == "silu":
        y = silu(g, y)
    elif after == "hard_swish":
        y = g.add("HardSwish", y)
    name = f"convolution_{batch}x{channels}x{side}x{side}_{filters}_k{kernel}_s{stride}_g{groups}"
    return "_".join(filter(None, [name, after, g.dtype])), g, {y: g.dtype}
