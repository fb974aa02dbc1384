"""Means, norms, pools and losses over more elements than 16 bits count, against fp64.

    python counts_test.py REDFUSER_RUN [--device cuda] [OPERATOR]

A count is a number of its own: no 16-bit float has 65505 or 100000 elements, and adding 1.0f ends at 2^24.
"""

import dataclasses
import sys
from typing import Callable

import ml_dtypes
import numpy as np
from onnx import helper

import float_types

# Relative to the largest number of the result: some roundings to the type, and of sums in fp32.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float": 1e-5, "double": 1e-11}
RANDOM = np.random.default_rng(0)
NOISE = RANDOM.normal(0, 0.25, 65521)


def around(center, width=1.0):
    return lambda *shape: center + width * np.resize(NOISE, shape)


@dataclasses.dataclass
class Case:
    """A node over `count` elements: shapes from the count, and what fp64 makes of the arrays."""

    op: str
    inputs: Callable  # of the count: arrays of fp64, integers as they are; None is an absent one
    expected: Callable  # of the arrays, rounded to the type
    attributes: Callable = lambda count: {}
    outputs: int = 1
    opset: int = 22
    domain: str = ""
    name: str = ""
    single: bool = False  # computed in fp32 whatever the type, as the operator's definition says
    most: int = 1 << 20  # of elements
    quadratic: bool = False  # unfused, every element reduces its row anew: in one type only


def plane(count):
    """Two sizes that multiply to the count."""
    height = next(size for size in range(int(count**0.5), 0, -1) if count % size == 0)
    return height, count // height


def image(center=0.5, channels=2):
    return lambda count: around(center)(1, channels, *plane(count))


def rows(center=0.5, count_rows=2):
    return lambda count: [around(center)(count_rows, count)]


def flat(count):
    """A row whose sum of exponentials is near its count."""
    return [around(0.5, 0.05)(1, count)]


def affine(channels=2):
    return [around(1)(channels), around(0)(channels)]


def moments(x, axes, epsilon=1e-5):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


def per_channel(value):
    return value.reshape(1, -1, 1, 1)


def log_softmax(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def losses(count, classes=3):
    return [around(0.5)(count, classes), RANDOM.integers(0, classes, count)]


def negative_log_likelihood(x, target, weight=None, ignored=-100):
    used = np.where(target == ignored, 0, target)
    weight = (np.ones(x.shape[1]) if weight is None else weight)[used] * (target != ignored)
    return -(x[np.arange(len(target)), used] * weight).sum() / weight.sum()


def spatial(x):
    return tuple(range(2, x.ndim))


def split_axes(count):
    """[a, 3, b] whose first and last dimensions multiply to the count."""
    first, last = plane(count)
    return [around(0.5)(first, 3, last), np.array([0, 2])]


def reduced(op, f, **more):
    return Case(op, rows(more.pop("center", 0.5)), lambda x: f(x.astype(np.float64)),
                lambda count: {"axes": [1], "keepdims": 0}, opset=13 if op != "ReduceSum" else 11, **more)


CASES = [
    reduced("ReduceMean", lambda x: x.mean(1)),
    Case("ReduceMean", lambda count: [around(0.5)(count, 2), np.array([0])], lambda x, axes: x.mean(0),
         lambda count: {"keepdims": 0}, name="of columns", most=1 << 30),
    Case("ReduceMean", split_axes, lambda x, axes: x.mean((0, 2)), lambda count: {"keepdims": 0}, name="of two axes apart"),
    Case("ReduceMean", lambda count: [image()(count)], lambda x: x.mean(), lambda count: {"keepdims": 0}, name="of all"),
    reduced("ReduceSum", lambda x: x.sum(1), center=0.01),
    reduced("ReduceL1", lambda x: np.abs(x).sum(1), center=0.05),
    reduced("ReduceL2", lambda x: np.sqrt((x * x).sum(1))),
    reduced("ReduceSumSquare", lambda x: (x * x).sum(1), center=0),
    reduced("ReduceLogSum", lambda x: np.log(x.sum(1))),
    reduced("ReduceLogSumExp", lambda x: np.log(np.exp(x).sum(1))),
    Case("GlobalAveragePool", lambda count: [image()(count)], lambda x: x.mean(spatial(x), keepdims=True)),
    Case("GlobalLpPool", lambda count: [image()(count)],
         lambda x: np.sqrt((x * x).sum(spatial(x), keepdims=True)), lambda count: {"p": 2}),
    Case("AveragePool", lambda count: [image(channels=1)(count)], lambda x: x.mean(spatial(x), keepdims=True),
         lambda count: {"kernel_shape": plane(count)}, most=1 << 30),
    Case("LpPool", lambda count: [image()(count)], lambda x: np.sqrt((x * x).sum(spatial(x), keepdims=True)),
         lambda count: {"kernel_shape": plane(count), "p": 2}),
    Case("InstanceNormalization", lambda count: [image(channels=1)(count), *affine(1)],
         lambda x, scale, bias: moments(x, spatial(x)) * per_channel(scale) + per_channel(bias), quadratic=True),
    Case("BatchNormalization", lambda count: [image(channels=1)(count), *affine(1), np.zeros(1), np.ones(1)],
         lambda x, scale, bias, mean, variance: [moments(x, (0, 2, 3)) * per_channel(scale) + per_channel(bias),
                                                 0.75 * mean + 0.25 * x.mean((0, 2, 3)), 0.75 * variance + 0.25 * x.var((0, 2, 3))],
         lambda count: {"training_mode": 1, "momentum": 0.75}, outputs=3, quadratic=True),
    Case("LayerNormalization", lambda count: [around(0.5)(2, count), around(1)(count), around(0)(count)],
         lambda x, scale, bias: moments(x, -1) * scale + bias, single=True),
    Case("GroupNormalization", lambda count: [image(channels=4)(count), *affine(4)],
         lambda x, scale, bias: moments(x.reshape(2, -1), -1).reshape(x.shape) * per_channel(scale) + per_channel(bias),
         lambda count: {"num_groups": 2}, single=True),
    Case("RMSNormalization", lambda count: [around(0.5)(2, count), around(1)(count)],
         lambda x, scale: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale, opset=23, single=True),
    Case("MeanVarianceNormalization", lambda count: [image()(count)], lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9)),
    Case("LpNormalization", rows(count_rows=1), lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)), quadratic=True),
    Case("LpNormalization", rows(count_rows=1), lambda x: x / np.abs(x).sum(-1, keepdims=True), lambda count: {"p": 1}, name="p = 1",
         quadratic=True),
    Case("Softmax", flat, lambda x: np.exp(log_softmax(x))),
    Case("Softmax", flat, lambda x: np.exp(log_softmax(x)), opset=11, name="by rows", quadratic=True),
    Case("LogSoftmax", flat, log_softmax),
    Case("SoftmaxCrossEntropyLoss", losses, lambda x, target: negative_log_likelihood(log_softmax(x), target)),
    Case("SoftmaxCrossEntropyLoss", lambda count: losses(4, count),
         lambda x, target: negative_log_likelihood(log_softmax(x), target), name="of many classes"),
    Case("NegativeLogLikelihoodLoss", losses, negative_log_likelihood),
    Case("NegativeLogLikelihoodLoss", losses, lambda x, target: negative_log_likelihood(x, target, ignored=0),
         lambda count: {"ignore_index": 0}, name="but some"),
    Case("NegativeLogLikelihoodLoss", lambda count: [*losses(count), around(1)(3)], negative_log_likelihood, name="weighted"),
    Case("MatMul", lambda count: [around(0.1)(2, count), around(0.1)(count, 2)], lambda a, b: a @ b),
    Case("CumSum", lambda count: [around(0)(2, count), np.array(1)], lambda x, axis: x.cumsum(1)),
    Case("LRN", lambda count: [around(0.5)(1, 8, 3)],
         lambda x: x / (1 + (x * x).sum(1, keepdims=True) / 2) ** 0.75,
         lambda count: {"size": count, "alpha": count / 2.0}, name="of all channels"),
    Case("SkipLayerNormalization", lambda count: [around(0.5)(1, 2, count), around(0)(1, 2, count), around(1)(count), around(0)(count)],
         lambda x, skip, scale, bias: moments(x + skip, -1, 1e-12) * scale + bias, domain="com.microsoft", single=True),
    Case("SimplifiedLayerNormalization", lambda count: [around(0.5)(2, count), around(1)(count)],
         lambda x, scale: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale, single=True),
    Case("GroupNorm", lambda count: [image(channels=4)(count).transpose(0, 2, 3, 1), *affine(4)],
         lambda x, scale, bias: moments(x.reshape(1, -1, 2, 2), (1, 3)).reshape(x.shape) * scale + bias,
         lambda count: {"groups": 2, "activation": 0}, domain="com.microsoft", single=True),
]
# Beyond 16 bits, and more than floats of 32 bits count one by one.
LARGE = (5 << 22) + 4096
SIZES = {"float16": (100000,), "bfloat16": (65505,), "float": (100000, LARGE), "double": (65505,)}


def check(program, case, dtype, count, arguments):
    array = float_types.TYPES[dtype][1]
    given = [value if value.dtype.kind == "i" else value.astype(array) for value in case.inputs(count)]
    feed = {f"x{index}": value for index, value in enumerate(given)}
    names = [f"y{index}" for index in range(case.outputs)]
    node = helper.make_node(case.op, list(feed), names, domain=case.domain, **case.attributes(count))
    model = float_types.model_of([node], feed, names, case.opset, [case.domain] if case.domain else [])
    wide = [value if value.dtype.kind == "i" else value.astype(np.float64) for value in given]
    expected = case.expected(*wide)
    expected = expected if isinstance(expected, list) else [expected]
    tolerance = max(TOLERANCE[dtype], TOLERANCE["float"] if case.single else 0)
    spacing = float(ml_dtypes.finfo(array).smallest_subnormal)
    for extra in ([], ["--no-fuse"])[:1 if case.quadratic and dtype != "float16" else 2]:
        outputs = float_types.run(program, model, feed, [*arguments, *extra])
        for name, wanted in zip(names, expected):
            error = float_types.error_of(outputs[name], wanted)
            if isinstance(error, str) or not error <= tolerance + spacing / np.max(np.abs(wanted)):
                return f"{name} {' '.join(extra)}: error {error}; {outputs[name].ravel()[:2]}, not {np.ravel(wanted)[:2]}"
    return None


def main():
    given = float_types.options(__doc__)
    work = [(case, dtype, count) for case in CASES for dtype in float_types.TYPES for count in SIZES[dtype]
            if count <= case.most and case.op == (given.operator or case.op)]
    return float_types.run_all(work, check, lambda case, dtype, count: f"{case.op} {case.name} {dtype}[{count}]", given)


if __name__ == "__main__":
    sys.exit(main())
