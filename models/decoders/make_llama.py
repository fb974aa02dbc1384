"""Writes llama/: a LLaMA-like decoder of random weights, in the operators that PyTorch's exporters write, two prompts,
and the 64 tokens that ONNX Runtime computes after each in fp32 by arg-max.

    python make_llama.py
"""

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "llama"
VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, INNER = 128, 64, 2, 4, 2, 16, 96
STEPS = 64
BATCH, LENGTH, PAST = "batch_size", "sequence_length", "past_sequence_length"


class Writer:
    """Nodes and weights of a graph under construction; values are named after their operators."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def __call__(self, operator, *inputs, name=None, **attributes):
        output = name or f"/{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], output, **attributes))
        return output

    def constant(self, value, dtype=np.int64):
        array = np.asarray(value, dtype)
        return self("Constant", value=numpy_helper.from_array(array))

    def weight(self, name, shape, spread):
        array = (self.random.standard_normal(shape) * spread).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def size(self, value, axis):
        return self("Gather", self("Shape", value), self.constant([axis]))

    def shaped(self, value, *sizes):
        """Reshaped; a size is a number or a value of one element."""
        parts = [size if isinstance(size, str) else self.constant([size]) for size in sizes]
        return self("Reshape", value, self("Concat", *parts, axis=0))


def rms_norm(w, x, name):
    gain = w.weight(f"{name}.weight", [HIDDEN], 0.2)
    mean = w("ReduceMean", w("Pow", x, w.constant(2, np.float32)), w.constant([-1]), keepdims=1)
    root = w("Sqrt", w("Add", mean, w.constant(1e-5, np.float32)))
    scaled = w("Mul", x, w("Reciprocal", root))
    return w("Mul", w("Add", gain, w.constant(1, np.float32)), scaled)


def rotation(w):
    """Cosines and sines of the positions, [batch, 1, length, head]."""
    frequencies = 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)
    positions = w("Cast", w("Unsqueeze", "position_ids", w.constant([2])), to=TensorProto.FLOAT)
    angles = w("Mul", positions, w.constant(frequencies[None, None], np.float32))
    both = w("Unsqueeze", w("Concat", angles, angles, axis=-1), w.constant([1]))
    return w("Cos", both), w("Sin", both)


def rotated(w, x, cosines, sines):
    middle, end = w.constant([HEAD // 2]), w.constant([2**62])
    low = w("Slice", x, w.constant([0]), middle, w.constant([-1]))
    high = w("Slice", x, middle, end, w.constant([-1]))
    turned = w("Concat", w("Neg", high), low, axis=-1)
    return w("Add", w("Mul", x, cosines), w("Mul", turned, sines))


def mask(w):
    """0 where a query sees a key, else the least float: keys up to its own that are not padding."""
    past, new = w.size("past_key_values.0.key", 2), w.size("input_ids", 1)
    total, one = w("Add", past, new), w.constant(1)
    squeeze = lambda value: w("Squeeze", value, w.constant([0]))
    queries = w("Range", squeeze(past), squeeze(total), one)
    keys = w("Range", w.constant(0), squeeze(total), one)
    causal = w("LessOrEqual", keys, w("Unsqueeze", queries, w.constant([1])))
    given = w("Cast", w("Unsqueeze", "attention_mask", w.constant([1, 2])), to=TensorProto.BOOL)
    least = w.constant(np.finfo(np.float32).min, np.float32)
    return w("Where", w("And", given, causal), w.constant(0, np.float32), least)


def heads(w, x, name, count):
    product = w("MatMul", x, w.weight(f"{name}.weight", [HIDDEN, count * HEAD], 0.14))
    split = w.shaped(product, w.size(x, 0), w.size(x, 1), count, HEAD)
    return w("Transpose", split, perm=[0, 2, 1, 3])


def repeated(w, x):
    """Every head of keys or values for each query head of its group."""
    batch, length, group = w.size(x, 0), w.size(x, 2), HEADS // KV_HEADS
    sizes = [batch, w.constant([KV_HEADS]), w.constant([group]), length, w.constant([HEAD])]
    wide = w("Expand", w("Unsqueeze", x, w.constant([2])), w("Concat", *sizes, axis=0))
    return w.shaped(wide, batch, HEADS, length, HEAD)


def attention(w, x, layer, turn, hidden):
    name = f"model.layers.{layer}.self_attn"
    query = rotated(w, heads(w, x, f"{name}.q_proj", HEADS), *turn)
    key = rotated(w, heads(w, x, f"{name}.k_proj", KV_HEADS), *turn)
    value = heads(w, x, f"{name}.v_proj", KV_HEADS)
    keys = w("Concat", f"past_key_values.{layer}.key", key, axis=2, name=f"present.{layer}.key")
    values = w("Concat", f"past_key_values.{layer}.value", value, axis=2,
               name=f"present.{layer}.value")
    scores = w("MatMul", query, w("Transpose", repeated(w, keys), perm=[0, 1, 3, 2]))
    scaled = w("Mul", scores, w.constant(HEAD**-0.5, np.float32))
    weights = w("Softmax", w("Add", scaled, hidden), axis=-1)
    mixed = w("Transpose", w("MatMul", weights, repeated(w, values)), perm=[0, 2, 1, 3])
    flat = w.shaped(mixed, w.size(x, 0), w.size(x, 1), HEADS * HEAD)
    return w("MatMul", flat, w.weight(f"{name}.o_proj.weight", [HEADS * HEAD, HIDDEN], 0.14))


def inner_layer(w, x, layer):
    name = f"model.layers.{layer}.mlp"
    gate = w("MatMul", x, w.weight(f"{name}.gate_proj.weight", [HIDDEN, INNER], 0.14))
    up = w("MatMul", x, w.weight(f"{name}.up_proj.weight", [HIDDEN, INNER], 0.14))
    both = w("Mul", w("Mul", gate, w("Sigmoid", gate)), up)
    return w("MatMul", both, w.weight(f"{name}.down_proj.weight", [INNER, HIDDEN], 0.12))


def model():
    w = Writer(seed=10)
    x = w("Gather", w.weight("model.embed_tokens.weight", [VOCABULARY, HIDDEN], 1), "input_ids")
    turn, hidden = rotation(w), mask(w)
    for layer in range(LAYERS):
        normed = rms_norm(w, x, f"model.layers.{layer}.input_layernorm")
        x = w("Add", x, attention(w, normed, layer, turn, hidden))
        normed = rms_norm(w, x, f"model.layers.{layer}.post_attention_layernorm")
        x = w("Add", x, inner_layer(w, normed, layer))
    last = rms_norm(w, x, "model.norm")
    w("MatMul", last, w.weight("lm_head.weight", [HIDDEN, VOCABULARY], 0.6), name="logits")

    total = f"{PAST} + {LENGTH}"
    declare = helper.make_tensor_value_info
    inputs = [declare("input_ids", TensorProto.INT64, [BATCH, LENGTH]),
              declare("attention_mask", TensorProto.INT64, [BATCH, total]),
              declare("position_ids", TensorProto.INT64, [BATCH, LENGTH])]
    outputs = [declare("logits", TensorProto.FLOAT, [BATCH, LENGTH, VOCABULARY])]
    for layer in range(LAYERS):
        for part in ("key", "value"):
            sizes = [BATCH, KV_HEADS, PAST, HEAD], [BATCH, KV_HEADS, total, HEAD]
            inputs.append(declare(f"past_key_values.{layer}.{part}", TensorProto.FLOAT, sizes[0]))
            outputs.append(declare(f"present.{layer}.{part}", TensorProto.FLOAT, sizes[1]))
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.weights)
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(result, full_check=True)
    return result


def generated(path, ids, seen):
    """The tokens after each prompt, and the least distance between the two largest logits."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    pasts = {name.replace("present", "past_key_values"): np.zeros([len(ids), KV_HEADS, 0, HEAD], np.float32)
             for name in names[1:]}
    tokens, margin = [], np.inf
    positions = np.maximum(seen.cumsum(1) - 1, 0)
    for _ in range(STEPS):
        feed = {"input_ids": ids, "attention_mask": seen, "position_ids": positions, **pasts}
        logits, *presents = session.run(names, feed)
        ordered = np.sort(logits[:, -1])
        margin = min(margin, (ordered[:, -1] - ordered[:, -2]).min())
        ids = logits[:, -1].argmax(-1)[:, None]
        tokens.append(ids)
        seen = np.concatenate([seen, np.ones_like(ids)], 1)
        positions = positions[:, -1:] + 1
        pasts = dict(zip(pasts, presents))
    return np.concatenate(tokens, 1), margin


def main():
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "model.onnx"
    onnx.save(model(), path)
    random = np.random.default_rng(1)
    one = random.integers(0, VOCABULARY, [1, 11])
    three = random.integers(0, VOCABULARY, [3, 9])
    lengths = np.array([[9], [4], [6]])
    seen = (np.arange(9) >= 9 - lengths).astype(np.int64)
    three *= seen
    np.save(FOLDER / "prompt1.npy", one)
    np.savez(FOLDER / "prompt3.npz", input_ids=three, attention_mask=seen)
    for name, ids, known in [("tokens1", one, np.ones_like(one)), ("tokens3", three, seen)]:
        tokens, margin = generated(path, ids, known)
        np.save(FOLDER / f"{name}.npy", tokens)
        print(f"{name}: {len(np.unique(tokens))} different tokens, least distance {margin:.4f}")


if __name__ == "__main__":
    main()
