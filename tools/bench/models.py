"""Plain ONNX graphs of the benchmark workloads, with seeded random weights."""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Collects nodes and initializers of one graph."""

    def __init__(self, seed=0):
        self.nodes, self.initializers = [], []
        self.random = np.random.default_rng(seed)
        self.count = 0

    def constant(self, array):
        self.count += 1
        name = f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, *shape, scale=0.02):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        self.count += 1
        name = f"{op}_{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name + ":0"], name=name, **attributes))
        return name + ":0"

    def linear(self, x, inputs, outputs):
        product = self.node("MatMul", x, self.weight(inputs, outputs))
        return self.node("Add", product, self.weight(outputs))

    def layer_norm(self, x, width):
        scale = self.constant(np.ones(width, np.float32))
        return self.node("LayerNormalization", x, scale, self.weight(width), axis=-1, epsilon=1e-12)

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.scalar(math.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.scalar(1))), self.scalar(0.5))

    def scalar(self, value):
        return self.constant(np.float32(value))

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "benchmark", inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tensor(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def heads(b, x, tokens, count, size, transpose):
    split = b.node("Reshape", x, b.constant(np.array([0, tokens, count, size], np.int64)))
    return b.node("Transpose", split, perm=transpose)


def attention(b, q, k, v, mask, size):
    scores = b.node("Div", b.node("MatMul", q, k), b.scalar(math.sqrt(size)))
    if mask:
        scores = b.node("Add", scores, mask)
    return b.node("MatMul", b.node("Softmax", scores, axis=-1), v)


def bert(layers=12, width=768, count=12, hidden=3072, tokens=512, vocabulary=30522):
    """A BERT encoder as exporters write it: token ids and a padding mask in, hidden states out."""
    b, size = Builder(), width // count
    x = b.node("Gather", b.weight(vocabulary, width), "input_ids")
    x = b.layer_norm(b.node("Add", x, b.weight(1, tokens, width)), width)
    visible = b.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden_keys = b.node("Mul", b.node("Sub", b.scalar(1), visible), b.scalar(-1e4))
    mask = b.node("Unsqueeze", hidden_keys, b.constant(np.array([1, 2], np.int64)))
    for _ in range(layers):
        q = heads(b, b.linear(x, width, width), tokens, count, size, [0, 2, 1, 3])
        k = heads(b, b.linear(x, width, width), tokens, count, size, [0, 2, 3, 1])
        v = heads(b, b.linear(x, width, width), tokens, count, size, [0, 2, 1, 3])
        out = b.node("Transpose", attention(b, q, k, v, mask, size), perm=[0, 2, 1, 3])
        out = b.node("Reshape", out, b.constant(np.array([0, tokens, width], np.int64)))
        x = b.layer_norm(b.node("Add", b.linear(out, width, width), x), width)
        wide = b.gelu(b.linear(x, width, hidden))
        x = b.layer_norm(b.node("Add", b.linear(wide, hidden, width), x), width)
    b.nodes.append(helper.make_node("Identity", [x], ["out"], name="out"))
    ids = [tensor(n, TensorProto.INT64, ["batch", tokens]) for n in ("input_ids", "attention_mask")]
    return b.model(ids, [tensor("out", TensorProto.FLOAT, ["batch", tokens, width])])


def attention_only(count=12, size=64):
    """softmax(q·kᵀ/√d)·v over a symbolic number of tokens."""
    b = Builder()
    shape = [1, count, "tokens", size]
    k = b.node("Transpose", "k", perm=[0, 1, 3, 2])
    out = attention(b, "q", k, "v", None, size)
    b.nodes.append(helper.make_node("Identity", [out], ["out"], name="out"))
    return b.model([tensor(n, TensorProto.FLOAT, shape) for n in "qkv"], [tensor("out", TensorProto.FLOAT, shape)])
