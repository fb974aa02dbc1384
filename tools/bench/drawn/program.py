"""The function in PyTorch that computes a drawn graph (graph.json, see drawing.py)."""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64, "i8": torch.int8,
         "bool": torch.bool}


def _axes(value):
    return value if isinstance(value, list) else [value]


def _reduction(function):
    return lambda x, axes, keepdims=1: function(x, _axes(axes), keepdim=bool(keepdims))


def _slice(x, start, end, axis, step):
    parts = [slice(None)] * x.dim()
    parts[axis[0]] = slice(start[0], end[0], step[0])
    return x[tuple(parts)]


def _pad(x, pads, mode):
    rank = x.dim()
    sides = [pads[axis + end * rank] for axis in (rank - 1, rank - 2) for end in (0, 1)]
    return F.pad(x, sides, mode={"edge": "replicate"}.get(mode, mode))


def _resize(x, roi, scales, sizes, mode, **_):
    if mode == "nearest":
        return F.interpolate(x, sizes[2:], mode="nearest")
    return F.interpolate(x, sizes[2:], mode="bilinear", align_corners=False)


# Tensors are those of the graph; operands that are integers (axes, sizes) are Python's.
OPERATORS = {
    "Abs": torch.abs,
    "Add": lambda a, b: a + b,
    "And": lambda a, b: a & b,
    "ArgMax": lambda x, axis, keepdims: x.argmax(axis, keepdim=bool(keepdims)),
    "AveragePool": lambda x, kernel_shape, strides, pads: F.avg_pool2d(x, kernel_shape, strides, pads[:2],
                                                                       count_include_pad=False),
    "Cast": lambda x, to: x.to(TYPES[to]),
    "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Conv": lambda x, w, bias, kernel_shape, strides, pads, group: F.conv2d(x, w, bias, strides, pads[:2], 1, group),
    "CumSum": lambda x, axis: x.cumsum(axis),
    "DepthToSpace": lambda x, blocksize, mode: F.pixel_shuffle(x, blocksize),
    "Div": lambda a, b: a / b,
    "Equal": lambda a, b: a == b,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Expand": lambda x, sizes: x.expand(sizes),
    "Gather": lambda x, places, axis: x[places],
    "GreaterOrEqual": lambda a, b: a >= b,
    "HardSwish": F.hardswish,
    "Less": lambda a, b: a < b,
    "Log": torch.log,
    "LogSoftmax": lambda x, axis: torch.log_softmax(x, axis),
    "MatMul": torch.matmul,
    "MaxPool": lambda x, kernel_shape, strides, pads: F.max_pool2d(x, kernel_shape, strides, pads[:2]),
    "Mul": lambda a, b: a * b,
    "Neg": torch.neg,
    "Pad": _pad,
    "ReduceLogSumExp": _reduction(torch.logsumexp),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMean": _reduction(torch.mean),
    "ReduceMin": _reduction(torch.amin),
    "ReduceSum": _reduction(torch.sum),
    "Relu": torch.relu,
    "Reshape": lambda x, sizes: x.reshape(sizes),
    "Resize": _resize,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Slice": _slice,
    "Softmax": lambda x, axis: torch.softmax(x, axis),
    "Split": lambda x, axis, num_outputs: torch.chunk(x, num_outputs, axis),
    "Sqrt": torch.sqrt,
    "Sub": lambda a, b: a - b,
    "Tanh": torch.tanh,
    "TopK": lambda x, k, axis: torch.topk(x, k[0], axis),
    "Transpose": lambda x, perm: x.permute(perm),
    "Unsqueeze": lambda x, axes: x.unsqueeze(axes[0]),
    "Where": torch.where,
}
# Operators of integers that are tensors: positions and masks.
OF_TENSORS = {"Add", "Sub", "Mul", "GreaterOrEqual", "Less", "Equal", "Where", "Abs"}


class Program:
    def __init__(self, folder, device):
        self.folder, self.device = pathlib.Path(folder), device
        graph = json.loads((self.folder / "graph.json").read_text())
        self.inputs, self.nodes, self.outputs = graph["inputs"], graph["nodes"], graph["outputs"]
        self.weights = dict(graph["weights"])
        self._values, self._tensors = {}, {}
        for name, (value, dtype) in graph["constants"].items():
            self._values[name] = value
            self._tensors[name] = torch.tensor(value, dtype=TYPES[dtype], device=device)

    def draw(self, generator):
        """Values for the inputs and weights, in their order."""
        return [self._drawn(sizes, dtype, values, generator) for _, sizes, dtype, values in self.inputs]

    def _drawn(self, sizes, dtype, values, generator):
        options = {"device": self.device, "generator": generator}
        if values == "boolean":
            seen = torch.rand(sizes, **options) > 0.2
            seen[..., 0] = True
            return seen
        if values.startswith("below"):
            return torch.randint(0, int(values.split()[1]), sizes, **options)
        terms = math.prod(sizes[1:]) if len(sizes) == 4 else sizes[-2] if values == "weight" else 1
        scale = terms**-0.5 if values == "weight" else 1
        return (torch.randn(sizes, **options) * scale).to(TYPES[dtype])

    def __call__(self, *arguments):
        values = {name: argument for (name, *_), argument in zip(self.inputs, arguments)}
        for operator, inputs, outputs, attributes in self.nodes:
            tensors = operator in OF_TENSORS
            operands = [values[name] if name in values else self._constant(name, tensors) for name in inputs]
            result = OPERATORS[operator](*operands, **attributes)
            values.update(zip(outputs, [result] if len(outputs) == 1 else result))
        return tuple(values[name].contiguous() for name in self.outputs)

    def _constant(self, name, as_tensor):
        if not name:
            return None
        value = self._values[name]
        integers = self._tensors[name].dtype == torch.int64
        if isinstance(value, list):
            return self._tensors[name] if as_tensor or not integers else value
        return self._tensors[name] if as_tensor and integers else value
