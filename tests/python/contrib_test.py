"""com.microsoft operators: what redfuser-run computes against ONNX Runtime.

    python contrib_test.py REDFUSER_RUN
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

RANDOM = np.random.default_rng(0)
TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
         "uint8": TensorProto.UINT8}


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
POSITIONS = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]], np.int64)

IDS = np.array([[1, 4, 2], [0, 3, 5]], np.int32)
SEGMENTS = np.array([[0, 0, 1], [0, 1, 1]], np.int32)


def packed(*shape):
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def last(*positions):
    return np.array(positions, np.int32)


def total(length):
    return np.array(length, np.int32)


def grouped(batch, length, past, heads=4, groups=2, size=16, packed_qkv=False, cache=None):
    """The first seven inputs of GroupQueryAttention; past is the number of cached positions."""
    if packed_qkv:
        qkv = [normal(batch, length, (heads + 2 * groups) * size), None, None]
    else:
        qkv = [normal(batch, length, heads * size), normal(batch, length, groups * size),
               normal(batch, length, groups * size)]
    shape = (batch, groups, past if cache is None else cache, size)
    lengths = last(*[past + length - 1] * batch)
    return qkv + [normal(*shape), normal(*shape), lengths, total(past + length)]


GROUPED = {"num_heads": 4, "kv_num_heads": 2}
ROTARY = [normal(16, 8), normal(16, 8)]
CACHED = ["y", "present_key", "present_value"]

# Operator, inputs (None: absent), attributes, names of the outputs ("": absent), those compared.
CASES = [
    ("Gelu", [normal(3, 8)], {}, ["y"]),
    ("BiasGelu", [normal(3, 8), normal(8)], {}, ["y"]),
    ("FastGelu", [normal(3, 8)], {}, ["y"]),
    ("FastGelu", [normal(3, 8), normal(8)], {}, ["y"]),
    ("QuickGelu", [normal(3, 8)], {}, ["y"]),
    ("QuickGelu", [normal(3, 8)], {"alpha": 1.0}, ["y"]),
    ("FusedMatMul", [normal(2, 3, 4), normal(2, 4, 5)], {"alpha": 0.5}, ["y"]),
    ("FusedMatMul", [normal(2, 4, 3), normal(2, 5, 4)], {"transA": 1, "transB": 1}, ["y"]),
    ("FusedMatMul", [normal(2, 3, 4), normal(5, 4)], {"transB": 1}, ["y"]),
    ("SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)], {}, ["y"]),
    ("SkipLayerNormalization",
     [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)], {"epsilon": 1e-3},
     ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)],
     {"epsilon": 1e-5}, ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization",
     [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)], {}, ["y"]),
    ("MultiHeadAttention", [normal(2, 5, 16), normal(2, 7, 16), normal(2, 7, 16)],
     {"num_heads": 4}, ["y"]),
    ("MultiHeadAttention",
     [normal(2, 5, 16), normal(2, 5, 16), normal(2, 5, 16), normal(48), MASK, normal(2, 4, 5, 5)],
     {"num_heads": 4, "scale": 0.3}, ["y"]),
    ("MultiHeadAttention",
     [normal(2, 5, 16), normal(2, 5, 16), normal(2, 5, 16), None, None, None,
      normal(2, 4, 3, 4), normal(2, 4, 3, 4)],
     {"num_heads": 4}, ["y", "present_key", "present_value"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48)], {"num_heads": 4}, ["y"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48), MASK], {"num_heads": 2}, ["y"]),
    ("Attention", [normal(2, 5, 16), normal(16, 48), normal(48)],
     {"num_heads": 2, "unidirectional": 1}, ["y"]),
    ("RotaryEmbedding", [normal(2, 4, 5, 8), POSITIONS, normal(9, 4), normal(9, 4)], {}, ["y"]),
    ("RotaryEmbedding", [normal(2, 5, 32), POSITIONS, normal(9, 4), normal(9, 4)],
     {"interleaved": 1}, ["y"]),
    ("GroupQueryAttention", grouped(2, 5, 0), GROUPED, CACHED),
    ("GroupQueryAttention", grouped(2, 1, 6), GROUPED, CACHED),
    ("GroupQueryAttention", grouped(1, 3, 4), {**GROUPED, "scale": 0.3}, CACHED),
    ("GroupQueryAttention", grouped(2, 1, 6) + ROTARY, {**GROUPED, "do_rotary": 1}, CACHED),
    ("GroupQueryAttention", grouped(2, 5, 0, packed_qkv=True) + ROTARY,
     {**GROUPED, "do_rotary": 1, "rotary_interleaved": 1}, CACHED),
    ("GroupQueryAttention", grouped(2, 6, 0), {**GROUPED, "local_window_size": 3}, CACHED),
    ("GroupQueryAttention", grouped(2, 1, 9), {**GROUPED, "local_window_size": 4}, CACHED),
    ("GroupQueryAttention", grouped(2, 1, 6), {**GROUPED, "softcap": 2.0}, CACHED),
    ("GroupQueryAttention", grouped(1, 5, 0), {**GROUPED, "smooth_softmax": 1}, CACHED),
    ("GroupQueryAttention", grouped(2, 1, 6) + [None, None, None, None, normal(4)], GROUPED,
     CACHED),
    ("GroupQueryAttention", grouped(2, 1, 6) + [None, None, None, normal(2, 1, 1, 7)], GROUPED,
     CACHED),
    # Batch elements of different lengths, in a cache that is longer than both.
    ("GroupQueryAttention",
     grouped(2, 1, 6, cache=7)[:5] + [last(6, 3), total(7)] + ROTARY,
     {**GROUPED, "do_rotary": 1}, CACHED, ["y"]),
    ("MatMulNBits", [normal(3, 32), packed(5, 2, 8), normal(5, 2)],
     {"K": 32, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    ("MatMulNBits", [normal(2, 3, 40), packed(5, 3, 8), normal(5, 3), packed(5, 2)],
     {"K": 40, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    ("MatMulNBits", [normal(3, 32), packed(5, 2, 8), normal(5, 2), None, None, normal(5)],
     {"K": 32, "N": 5, "bits": 4, "block_size": 16}, ["y"]),
    ("MatMulNBits", [normal(3, 32), packed(5, 2, 16), normal(5, 2), packed(5, 2)],
     {"K": 32, "N": 5, "bits": 8, "block_size": 16}, ["y"]),
    ("EmbedLayerNormalization",
     [IDS, SEGMENTS, normal(6, 8), normal(4, 8), normal(2, 8), normal(8), normal(8)],
     {"epsilon": 1e-5}, ["y", "mask_index"]),
    ("EmbedLayerNormalization",
     [IDS, None, normal(6, 8), normal(4, 8), None, normal(8), normal(8), SEGMENTS],
     {"epsilon": 1e-5}, ["y", "mask_index", "sum"]),
    ("MoE", [normal(7, 8), normal(7, 4), normal(4, 6, 8), None, normal(4, 8, 6)],
     {"k": 2, "normalize_routing_weights": 1}, ["y"]),
    ("MoE", [normal(2, 3, 8), normal(6, 4), normal(4, 6, 8), normal(4, 6), normal(4, 8, 6),
             normal(4, 8)],
     {"k": 1, "activation_type": "silu"}, ["y"]),
    ("MoE", [normal(7, 8), normal(7, 4), normal(4, 12, 8), normal(4, 12), normal(4, 8, 6)],
     {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 1.0,
      "activation_alpha": 1.702, "activation_beta": 1.0}, ["y"]),
    ("SimplifiedLayerNormalization", [normal(2, 3, 8), normal(8)], {"epsilon": 1e-5}, ["y"]),
]


def build(op, inputs, attributes, outputs, compared=None):
    names = ["" if value is None else f"x{k}" for k, value in enumerate(inputs)]
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(name, TYPES[value.dtype.name], value.shape)
             for name, value in zip(names, inputs) if value is not None]
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    feed = {name: value for name, value in zip(names, inputs) if value is not None}
    graph = helper.make_graph([node], "g", infos, results)
    return helper.make_model(graph, opset_imports=imports, ir_version=9), feed


def check(run, case, folder):
    model, feed = build(*case)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    np.savez(folder / "inputs.npz", **feed)
    results = dict(zip(names, session.run(None, feed)))
    compared = case[4] if len(case) > 4 else names
    np.savez(folder / "outputs.npz", **{name: results[name] for name in compared})
    done = subprocess.run([run, path, "--inputs", folder / "inputs.npz", "--compare",
                           folder / "outputs.npz", "--rtol", "1e-4", "--atol", "1e-5"],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-500:]


def main():
    onnxruntime.set_default_logger_severity(4)
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            problem = check(sys.argv[1], case, pathlib.Path(folder))
            print(f"{case[0]} {case[2]}: {problem or 'ok'}", flush=True)
            problems += problem is not None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
