"""A graph that is drawn at random: its ONNX nodes, and the same as plain values for a machine that has PyTorch only.

A folder of a graph has model.onnx, whose weights are in weights.bin, and graph.json:
    inputs     [name, sizes, type, values] for each input and weight; values: "normal", "weight", "boolean", or
               "below N" (integers)
    constants  {name: [value, type]}
    nodes      [operator, inputs, outputs, attributes]
    outputs    names
    weights    [name, offset in weights.bin]
"""

import json
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "i64": TensorProto.INT64,
         "i8": TensorProto.INT8, "bool": TensorProto.BOOL}
BYTES = {"f16": 2, "bf16": 2, "f32": 4}
OPSET = 20
ALIGNMENT = 256  # of a weight in weights.bin


class Sizes:
    """Draws sizes: even in their logarithm, half of them multiples of what kernels like."""

    def __init__(self, random):
        self.random = random

    def between(self, low, high):
        value = int(round(math.exp(self.random.uniform(math.log(low), math.log(high)))))
        if self.random.random() < 0.5:
            for unit in (256, 64, 16, 8):
                if value >= 2 * unit:
                    return value // unit * unit
        return value

    def tensor(self, rank, elements):
        """Sizes of a tensor with at most so many elements, and at least 1/512 of them."""
        while True:
            sizes = [self.between(1, 4096) for _ in range(rank)]
            if self.random.random() < 0.5:
                sizes[self.random.randrange(rank)] = self.between(256, 65536)
            if elements / 512 <= math.prod(sizes) <= elements:
                return sizes


class Drawing:
    def __init__(self, dtype):
        self.dtype = dtype
        self.nodes, self.inputs, self.constants, self.count = [], [], {}, 0

    def input(self, sizes, dtype=None, values="normal"):
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, list(sizes), dtype or self.dtype, values))
        return name

    def weight(self, sizes):
        return self.input(sizes, values="weight")

    def constant(self, value, dtype=None):
        self.count += 1
        name = f"c{self.count}"
        self.constants[name] = (value, dtype or self.dtype)
        return name

    def integers(self, value):
        return self.constant(value, "i64")

    def add(self, operator, *inputs, results=1, **attributes):
        self.count += 1
        outputs = [f"t{self.count}_{i}" for i in range(results)]
        self.nodes.append((operator, list(inputs), outputs, attributes))
        return outputs[0] if results == 1 else outputs

    def as_float(self, value):
        return value if self.dtype == "f32" else self.add("Cast", value, to="f32")

    def as_drawn(self, value):
        return value if self.dtype == "f32" else self.add("Cast", value, to=self.dtype)

    def write(self, folder, outputs):
        """Writes a model with the outputs {name: type}; raises what onnx does of a graph that is not valid."""
        folder = pathlib.Path(folder)
        model = onnx.shape_inference.infer_shapes(self._model(outputs), strict_mode=True)
        onnx.checker.check_model(model)
        weights = self._move_weights(model.graph)
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / "model.onnx")
        graph = {"inputs": self.inputs, "constants": self.constants, "nodes": self.nodes, "outputs": list(outputs),
                 "weights": weights}
        (folder / "graph.json").write_text(json.dumps(graph))

    def _model(self, outputs):
        inputs = [helper.make_tensor_value_info(name, TYPES[dtype], sizes) for name, sizes, dtype, _ in self.inputs]
        results = [helper.make_value_info(name, helper.make_tensor_type_proto(TYPES[dtype], None))
                   for name, dtype in outputs.items()]
        nodes = [helper.make_node(operator, inputs, outputs, **_attributes(attributes))
                 for operator, inputs, outputs, attributes in self.nodes]
        constants = [_tensor(name, *constant) for name, constant in self.constants.items()]
        graph = helper.make_graph(nodes, "drawn", inputs, results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

    def _move_weights(self, graph):
        """Inputs that are weights become initializers in weights.bin; their names and offsets."""
        weights, offset = [], 0
        for name, sizes, dtype, values in self.inputs:
            if values != "weight":
                continue
            length = math.prod(sizes) * BYTES[dtype]
            graph.initializer.append(_external(name, sizes, dtype, offset, length))
            weights.append((name, offset))
            offset += -(-length // ALIGNMENT) * ALIGNMENT
        names = {name for name, _ in weights}
        inputs = [value for value in graph.input if value.name not in names]
        del graph.input[:]
        graph.input.extend(inputs)
        return weights


def _attributes(attributes):
    return {key: TYPES[value] if key == "to" else value for key, value in attributes.items()}


def _tensor(name, value, dtype):
    array = np.array(value)
    return helper.make_tensor(name, TYPES[dtype], array.shape, array.flatten().tolist())


def _external(name, sizes, dtype, offset, length):
    tensor = TensorProto(name=name, data_type=TYPES[dtype], dims=sizes, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights.bin", "offset": offset, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
