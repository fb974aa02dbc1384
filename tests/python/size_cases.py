"""Models whose sizes follow from a dimension `n`, for sizes_test.py."""

import itertools

import numpy as np
from onnx import TensorProto, helper


def ints(*values):
    return np.array(values, np.int64)


class Graph:
    """Nodes, the constants they take, and the shapes of the inputs, in which "n" stands for the dimension."""

    def __init__(self, refused=(), may_refuse=False, **shapes):
        self.shapes, self.nodes, self.constants, self.outputs = shapes, [], {}, []
        # The sizes at which every run must fail, naming the node; whether one may where a peer answers.
        self.refused, self.may_refuse = refused, may_refuse

    def add(self, op, *inputs, count=1, **attributes):
        names = []
        for value in inputs:
            if isinstance(value, np.ndarray):
                name = f"c{len(self.constants)}"
                self.constants[name] = value
                value = name
            names.append(value or "")
        outputs = [f"v{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(helper.make_node(op, names, outputs, name=f"{op}{len(self.nodes)}",
                                           **attributes))
        return outputs[0] if count == 1 else outputs

    def give(self, *names):
        self.outputs += names


def slices():
    """Every sign and reach of start, end and step."""
    places = (-100, -3, -1, 0, 1, 3, 100, 2**31 - 1, -(2**31) + 1)
    for step in (1, 2, 3, -1, -2, -3):
        graph = Graph(x=("n", 2))
        for start, end in itertools.product(places, places):
            graph.give(graph.add("Slice", "x", ints(start), ints(end), ints(0), ints(step)))
        yield f"slices by {step}", graph


def uses_of_slices():
    """What reads a slice has its size."""
    def part(graph, start, end, step=1):
        return graph.add("Slice", "x", ints(start), ints(end), ints(0), ints(step))

    far = 2**31 - 1
    graph = Graph(x=("n", 3))
    later, sooner, last = part(graph, 1, far), part(graph, 0, -1), part(graph, -1, far)
    first, back = part(graph, 0, 1), part(graph, -1, -far, -1)
    graph.give(graph.add("Sub", later, sooner), graph.add("Mul", "x", last),
               graph.add("Sub", first, last), graph.add("Add", "x", back),
               graph.add("Concat", later, last, first, axis=0),
               graph.add("Softmax", later, axis=1), graph.add("ReduceSum", sooner, ints(1)),
               graph.add("ReduceSum", later, ints(0)), graph.add("Shape", last),
               graph.add("Reshape", later, ints(-1)), graph.add("Reshape", last, ints(-1)),
               graph.add("MatMul", later, np.ones((3, 2), np.float32)),
               graph.add("MatMul", last, np.ones((3, 2), np.float32)),
               graph.add("Gather", later, ints(0, 2), axis=1),
               graph.add("Expand", last, graph.add("Shape", "x")))
    two = part(graph, 2, far)
    graph.give(graph.add("Sub", two, part(graph, 0, -2)), graph.add("Transpose", two),
               graph.add("MatMul", two, graph.add("Transpose", two)))
    yield "uses of slices", graph


def paddings():
    """Where a dimension has no element, only constants pad it."""
    for mode in ("constant", "edge", "reflect", "wrap"):
        crops = Graph(x=("n", 2))
        for before, after in ((-1, 0), (0, -2), (-1, -1)):
            crops.give(crops.add("Pad", "x", ints(before, 0, after, 1), mode=mode))
        yield f"crop, {mode}", crops
        for before, after in ((1, 0), (0, 2)):
            graph = Graph(x=("n", 2), refused=() if mode == "constant" else (0,))
            graph.give(graph.add("Pad", "x", ints(before, 0, after, 1), mode=mode))
            yield f"pad {mode} {before} {after}", graph


def layouts():
    graph = Graph(x=("n", 4))
    size = graph.add("Shape", "x", start=0, end=1)
    count = graph.add("Squeeze", size, ints(0))
    graph.give(graph.add("Range", np.array(0), count, np.array(1)),
               graph.add("Range", np.array(1), count, np.array(2)),
               graph.add("Range", count, np.array(0), np.array(-1)),
               graph.add("Range", np.array(3), count, np.array(1)),
               graph.add("Tile", "x", ints(2, 3)), graph.add("Tile", "x", ints(0, 1)),
               graph.add("Reshape", "x", ints(-1, 2)), graph.add("Reshape", "x", ints(2, -1)),
               graph.add("Reshape", "x", ints(0, 2, 2)), graph.add("Flatten", "x", axis=0),
               graph.add("Flatten", "x", axis=2), graph.add("Transpose", "x"),
               graph.add("Expand", "x", ints(2, 1, 4)), graph.add("Unsqueeze", "x", ints(0)),
               graph.add("ConstantOfShape", size), graph.add("NonZero", "x"),
               graph.add("Concat", "x", "x", axis=0), graph.add("EyeLike", "x"),
               graph.add("Concat", "x", np.ones((1, 4), np.float32), "x", axis=0),
               graph.add("Trilu", "x"), graph.add("CumSum", "x", np.array(0)))
    yield "layouts", graph
    graph = Graph(x=("n", 3), y=(1, 1, "n"))
    for parts in (2, 3, 4):
        graph.give(*graph.add("Split", "x", count=parts, axis=0, num_outputs=parts))
    for target in (ints(1, 2), ints(4, 3), ints(3, 0)):
        graph.give(graph.add("CenterCropPad", "x", target))
    for scale in (0.5, 1.5, 3.7):
        graph.give(graph.add("Resize", "y", None, np.array([1, 1, scale], np.float32),
                             mode="nearest", coordinate_transformation_mode="asymmetric"))
    yield "parts and scales", graph


def reductions():
    graph = Graph(x=("n", 3))
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        graph.give(graph.add(f"Reduce{op}", "x", ints(0)),
                   graph.add(f"Reduce{op}", "x", ints(1), keepdims=0),
                   graph.add(f"Reduce{op}", "x", keepdims=0))
    yield "reductions", graph
    graph = Graph(x=("n", 3))
    whole = [graph.add("Cast", "x", to=kind) for kind in
             (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8)]
    graph.give(*(graph.add(op, x, ints(0)) for op in ("ReduceMax", "ReduceMin") for x in whole))
    yield "extremes of integers", graph
    graph = Graph(x=("n", 3))
    graph.give(graph.add("ArgMax", "x", axis=1), *graph.add("TopK", "x", ints(2), count=2),
               graph.add("Softmax", "x", axis=0), graph.add("LogSoftmax", "x", axis=1),
               graph.add("Hardmax", "x", axis=0), graph.add("LpNormalization", "x", axis=1))
    yield "rows", graph


def refusals():
    """No element to take."""
    for name, op, inputs, refused, form in (
            ("the place of a maximum", "ArgMax", (), (0,), {"axis": 0}),
            ("the last place of a minimum", "ArgMin", (), (0,), {"axis": 0, "select_last_index": 1}),
            ("the best of none", "TopK", (ints(1),), (0,), {"axis": 0, "count": 2}),
            ("the best two of one", "TopK", (ints(2),), (0, 1), {"axis": 0, "count": 2}),
            ("a row", "Gather", (ints(0, -1),), (0,), {}),
            ("the third row", "Gather", (ints(2),), (0, 1, 2), {}),
            ("elements", "GatherElements", (ints(0, -1, 0, 0).reshape(2, 2),), (0,), {}),
            ("too many elements", "GatherElements", (ints(*[0] * 6).reshape(3, 2),), (0, 1, 2),
             {"axis": 1}),
            ("tuples", "GatherND", (ints(0, 1, -1, -1).reshape(2, 2),), (0,), {})):
        graph = Graph(x=("n", 2), refused=refused)
        outputs = graph.add(op, "x", *inputs, **form)
        graph.give(*(outputs if isinstance(outputs, list) else [outputs]))
        yield name, graph


def windows():
    for kernel, stride, pads in ((1, 1, 0), (2, 1, 0), (3, 2, 1), (2, 2, 0)):
        graph = Graph(x=(1, 2, "n"), may_refuse=True)
        weights = np.linspace(-1, 1, 4 * kernel, dtype=np.float32).reshape(2, 2, kernel)
        form = {"kernel_shape": [kernel], "strides": [stride], "pads": [pads, pads]}
        graph.give(graph.add("Conv", "x", weights, **form), graph.add("MaxPool", "x", **form),
                   graph.add("AveragePool", "x", **form),
                   graph.add("LpPool", "x", **form))
        yield f"windows of {kernel} by {stride} in {pads}", graph
    graph = Graph(x=("n", 2, 3))
    graph.give(graph.add("Conv", "x", np.ones((2, 2, 2), np.float32)),
               graph.add("ConvTranspose", "x", np.ones((2, 2, 2), np.float32)),
               graph.add("GlobalMaxPool", "x"), graph.add("GlobalAveragePool", "x"),
               graph.add("InstanceNormalization", "x", np.ones(2, np.float32),
                         np.zeros(2, np.float32)))
    yield "a batch of images", graph


def two_sizes():
    """Broadcasting between dimensions of their own."""
    graph = Graph(x=("n",), y=(1,))
    graph.give(graph.add("Add", "x", "y"), graph.add("Equal", "y", "x"),
               graph.add("Where", graph.add("Less", "x", "y"), "x", "y"))
    yield "broadcast of 1", graph
    graph = Graph(x=("n", 1), y=("n",))
    graph.give(graph.add("Add", "x", "y"), graph.add("MatMul", "x", graph.add("Transpose", "x")),
               graph.add("MatMul", graph.add("Transpose", "x"), "x"))
    yield "products", graph


def squeezes():
    """Dimensions that go where a run has one element along them."""
    for shape in ((1, "n", 3), ("n", 2, "n"), ("n",)):
        graph = Graph(x=shape)
        squeezed = graph.add("Squeeze", "x")
        graph.give(squeezed, graph.add("Add", squeezed, graph.add("Exp", squeezed)), graph.add("Shape", squeezed))
        yield f"squeezed {shape}", graph


FAMILIES = (slices, uses_of_slices, paddings, layouts, reductions, refusals, windows, two_sizes, squeezes)
CASES = [case for family in FAMILIES for case in family()]
