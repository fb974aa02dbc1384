"""Decoders whose cache has other forms than a symbolic length: redfuser-run --generate against ONNX Runtime.

    python decoder_forms_test.py REDFUSER_RUN MODELS_FOLDER
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from models import quiet_session

STEPS, ROOM = 12, 32


def layers(make, w, attention):
    """Logits of two layers around `attention`, which takes the normalised values and the layer."""
    x = w("Gather", w.weight("embed", [make.VOCABULARY, make.HIDDEN], 1), "input_ids")
    for layer in range(make.LAYERS):
        mixed = attention(make.rms_norm(w, x, f"{layer}.before"), layer)
        x = w("Add", x, w("MatMul", mixed, w.weight(f"{layer}.o", [make.HIDDEN, make.HIDDEN], 0.14)))
        x = w("Add", x, make.inner_layer(w, make.rms_norm(w, x, f"{layer}.after"), layer))
    head = w.weight("head", [make.HIDDEN, make.VOCABULARY], 0.6)
    w("MatMul", make.rms_norm(w, x, "last"), head, name="logits")


def finished(make, w, inputs, past, present, lengths, opsets):
    declare, kv = helper.make_tensor_value_info, (make.KV_HEADS, make.HEAD)
    inputs = [declare(name, TensorProto.INT64, sizes) for name, sizes in inputs.items()]
    outputs = [declare("logits", TensorProto.FLOAT, ["b", "s", make.VOCABULARY])]
    for layer in range(make.LAYERS):
        for part in ("key", "value"):
            sizes = [["b", kv[0], length, kv[1]] for length in lengths]
            name = past.format(layer=layer, part=part)
            inputs.append(declare(name, TensorProto.FLOAT, sizes[0]))
            outputs.append(declare(present.format(layer=layer, part=part), TensorProto.FLOAT, sizes[1]))
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def grouped(make, lengths):
    """com.microsoft.GroupQueryAttention, which rotates, and takes the lengths from the mask."""
    w = make.Writer(3)
    last = w("Sub", w("ReduceSum", "attention_mask", w.constant([1]), keepdims=1), w.constant([1]))
    ends = w("Cast", last, to=TensorProto.INT32)
    total = w("Cast", w("Gather", w("Shape", "attention_mask"), w.constant(1)), to=TensorProto.INT32)
    angles = np.arange(64)[:, None] * 10000.0 ** (-np.arange(0, make.HEAD, 2) / make.HEAD)
    for name, table in [("cos", np.cos(angles)), ("sin", np.sin(angles))]:
        w.weights.append(numpy_helper.from_array(table.astype(np.float32), name))

    def attention(x, layer):
        parts = [w("MatMul", x, w.weight(f"{layer}.{part}", [make.HIDDEN, heads * make.HEAD], 0.14))
                 for part, heads in [("q", make.HEADS), ("k", make.KV_HEADS), ("v", make.KV_HEADS)]]
        pasts = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        results = [f"mixed.{layer}", f"present.{layer}.key", f"present.{layer}.value"]
        w.nodes.append(helper.make_node(
            "GroupQueryAttention", [*parts, *pasts, ends, total, "cos", "sin"], results,
            domain="com.microsoft", num_heads=make.HEADS, kv_num_heads=make.KV_HEADS, do_rotary=1))
        return results[0]

    layers(make, w, attention)
    inputs = {"input_ids": ["b", "s"], "attention_mask": ["b", "total"]}
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return finished(make, w, inputs, "past_key_values.{layer}.{part}", "present.{layer}.{part}",
                    lengths, opsets)


def scattered(make):
    """Opset 24: TensorScatter writes a buffer, of which Attention reads nonpad_kv_seqlen positions. The causal mask is
    the model's own: is_causal compares positions from 0 by ONNX, from those before nonpad_kv_seqlen by ONNX Runtime."""
    w = make.Writer(3)
    turn = make.rotation(w)
    slots = w.constant(np.arange(ROOM)[None, None])
    causal = w("LessOrEqual", slots, w("Unsqueeze", "position_ids", w.constant([2])))
    mask = w("Unsqueeze", causal, w.constant([1]))

    def attention(x, layer):
        query = make.rotated(w, make.heads(w, x, f"{layer}.q", make.HEADS), *turn)
        key = make.rotated(w, make.heads(w, x, f"{layer}.k", make.KV_HEADS), *turn)
        value = make.heads(w, x, f"{layer}.v", make.KV_HEADS)
        caches = [w("TensorScatter", f"{part}_cache.{layer}", new, "write_indices", axis=2,
                    name=f"updated_{part}_cache.{layer}")
                  for part, new in [("key", key), ("value", value)]]
        mixed = w("Attention", query, *caches, mask, "", "", "nonpad_kv_seqlen")
        flat = w("Transpose", mixed, perm=[0, 2, 1, 3])
        return w.shaped(flat, w.size(x, 0), w.size(x, 1), make.HIDDEN)

    layers(make, w, attention)
    inputs = {"input_ids": ["b", "s"], "position_ids": ["b", "s"], "write_indices": ["b"],
              "nonpad_kv_seqlen": ["b"]}
    return finished(make, w, inputs, "{part}_cache.{layer}", "updated_{part}_cache.{layer}",
                    (ROOM, ROOM), [helper.make_opsetid("", 24)])


def merged(make):
    """As Optimum merges two decoders: a branch joins past and new positions, the other takes the new ones alone."""
    proto = make.model()
    declare = helper.make_tensor_value_info
    for node in proto.graph.node:
        if not node.output[0].startswith("present."):
            continue
        past, new = node.input
        result = declare("joined", TensorProto.FLOAT, None)
        both = helper.make_graph([helper.make_node("Concat", [past, new], ["joined"], axis=2)], "with_past", [], [result])
        alone = helper.make_graph([helper.make_node("Identity", [new], ["joined"])], "no_past", [], [result])
        node.CopyFrom(helper.make_node("If", ["use_cache_branch"], list(node.output), then_branch=both, else_branch=alone))
    proto.graph.input.append(declare("use_cache_branch", TensorProto.BOOL, [1]))
    return proto


def expected(path, ids):
    session = quiet_session(str(path))
    names = [output.name for output in session.get_outputs()]
    feed, length, tokens = {}, 0, []
    for given in session.get_inputs():
        if given.type == "tensor(float)":
            sizes = [size if isinstance(size, int) else 0 for size in given.shape]
            sizes[0] = len(ids)
            feed[given.name] = np.zeros(sizes, np.float32)
    pasts = list(feed)
    for _ in range(STEPS):
        start, length = length, length + ids.shape[1]
        rows = np.full(len(ids), start)
        known = {"input_ids": ids, "attention_mask": np.ones((len(ids), length), np.int64),
                 "position_ids": rows[:, None] + np.arange(length - start), "write_indices": rows,
                 "nonpad_kv_seqlen": np.full(len(ids), length), "use_cache_branch": np.array([start > 0])}
        given = {i.name: known[i.name] for i in session.get_inputs() if i.name in known}
        logits, *presents = session.run(names, {**given, **feed})
        feed = dict(zip(pasts, presents))
        ids = logits[:, -1].argmax(-1)[:, None]
        tokens.append(ids)
    return np.concatenate(tokens, 1).tolist()


def refused(what, command, *parts):
    """Whether the command does anything but end with an error that has one of the parts."""
    done = subprocess.run(command, capture_output=True, text=True)
    fails = done.returncode == 2 and any(part in done.stderr for part in parts)
    print(f"{what}: {'ok' if fails else (done.returncode, done.stdout[:80], done.stderr)}", flush=True)
    return not fails


def main():
    program, models = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(models / "decoders"))
    import make_llama as make

    forms = {"grouped": grouped(make, ("past", "total")), "grouped, fixed buffer": grouped(make, (ROOM, ROOM)),
             "grouped, open buffer": grouped(make, ("room", "room")), "scattered": scattered(make), "merged": merged(make)}
    problems = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model, prompt, padded = folder / "model.onnx", folder / "prompt.npy", folder / "padded.npz"
        ids = np.random.default_rng(2).integers(0, make.VOCABULARY, [2, 7])
        np.save(prompt, ids)
        for name, proto in forms.items():
            onnx.save(proto, model)
            wanted = expected(model, ids)
            command = [program, model, "--device", "cpu", "--prompt", prompt, "--json", "-", "--generate"]
            for chunk in ("0", "3"):
                done = subprocess.run([*command, str(STEPS), "--prompt-chunk", chunk], capture_output=True, text=True)
                tokens = json.loads(done.stdout)["tokens"] if done.returncode == 0 else done.stderr
                print(f"{name}, chunk {chunk}: {'ok' if tokens == wanted else tokens}", flush=True)
                problems += tokens != wanted
            np.savez(padded, input_ids=ids, attention_mask=np.arange(7) >= np.array([[0], [2]]))
            if name == "merged":
                continue
            if ROOM in {d.dim_value for d in proto.graph.input[-1].type.tensor_type.shape.dim}:
                problems += refused(f"{name}, full", [*command, "40"], "cache", "past_key_values")
            with_padding = [padded if part == prompt else part for part in command]
            problems += refused(f"{name}, padded", [*with_padding, "2"], "row 1 is padded")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
