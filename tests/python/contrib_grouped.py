"""GroupQueryAttention, and rotary embeddings."""

import numpy as np

from contrib_case import Case, last, normal

CACHED = ["y", "present_key", "present_value"]
HEADS = {"num_heads": 4, "kv_num_heads": 2}
ROTARY = [normal(16, 8), normal(16, 8)]


def total(length):
    return np.array(length, np.int32)


def inputs(batch, length, past, heads=4, groups=2, size=16, packed=False, cache=None):
    """The first seven; past is the number of cached positions."""
    if packed:
        qkv = [normal(batch, length, (heads + 2 * groups) * size), None, None]
    else:
        qkv = [normal(batch, length, heads * size), normal(batch, length, groups * size),
               normal(batch, length, groups * size)]
    shape = (batch, groups, past if cache is None else cache, size)
    lengths = last(*[past + length - 1] * batch)
    return qkv + [normal(*shape), normal(*shape), lengths, total(past + length)]


def grouped(given, attributes=None, outputs=None, **more):
    # A single query's scores are a product of their own.
    more.setdefault("fused", "attention")
    return Case("GroupQueryAttention", given, {**HEADS, **(attributes or {})},
                list(outputs or CACHED), **more)


def normed():
    """Heads of queries and keys are divided by their root mean square and weighted."""
    given, weights = inputs(2, 1, 6), [normal(16), normal(16)]
    like = list(given)
    for which, (count, weight) in enumerate(zip((4, 2), weights)):
        x = given[which].reshape(2, 1, count, 16)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
        like[which] = x.reshape(given[which].shape)
    return grouped(given + ROTARY + [None] * 5 + weights, {"do_rotary": 1},
                   like=grouped(like + ROTARY, {"do_rotary": 1}))


ROTARY_POSITIONS = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]], np.int64)
TABLES = [normal(9, 4), normal(9, 4)]
STREAMS = np.stack([ROTARY_POSITIONS, 8 - ROTARY_POSITIONS, ROTARY_POSITIONS // 2])


def rotary(x, positions, attributes=None, tables=None, op="RotaryEmbedding", **more):
    return Case(op, [x, positions] + (tables or TABLES), attributes or {}, **more)


CASES = [
    grouped(inputs(2, 5, 0)),
    grouped(inputs(2, 5, 0)[:3] + [None, None] + inputs(2, 5, 0)[5:]),
    grouped(inputs(2, 1, 6)),
    grouped(inputs(1, 3, 4), {"scale": 0.3}),
    grouped(inputs(1, 5, 0, heads=4, groups=4), {"kv_num_heads": 4}),
    grouped(inputs(2, 1, 6) + ROTARY, {"do_rotary": 1}),
    grouped(inputs(2, 5, 0, packed=True) + ROTARY, {"do_rotary": 1, "rotary_interleaved": 1}),
    grouped(inputs(2, 1, 6) + ROTARY + [np.array([[6], [6]])], {"do_rotary": 1}),
    grouped(inputs(2, 6, 0), {"local_window_size": 3}),
    grouped(inputs(2, 1, 9), {"local_window_size": 4}),
    grouped(inputs(2, 1, 6), {"softcap": 2.0}),
    grouped(inputs(1, 5, 0), {"smooth_softmax": 1}),
    grouped(inputs(1, 5, 0), {"causal": 0}),
    grouped(inputs(2, 1, 6) + [None, None, None, None, normal(4)]),
    grouped(inputs(2, 5, 0) + [None, None, None, None, normal(4)], {"local_window_size": 2}),
    grouped(inputs(2, 1, 6) + [None, None, None, normal(2, 1, 1, 7)]),
    grouped(inputs(2, 5, 0) + [None, None, None, normal(1, 4, 5, 5)], {"softcap": 3.0}),
    grouped(inputs(2, 1, 6), {"qk_output": 1}, CACHED + ["qk"], fused=""),
    grouped(inputs(1, 5, 0), {"qk_output": 2}, CACHED + ["qk"], fused=""),
    # Batch elements of different lengths, in a cache that is longer than both.
    grouped(inputs(2, 1, 6, cache=7)[:5] + [last(6, 3), total(7)] + ROTARY, {"do_rotary": 1},
            compared=["y"]),
    normed(),
    grouped(inputs(2, 1, 6) + [None] * 5 + [normal(1)], refused="quantised cache", fused=""),
    grouped(inputs(2, 1, 3, cache=4), {"sliding_window_cache": 1, "local_window_size": 4},
            refused="sliding_window_cache", fused=""),
    rotary(normal(2, 4, 5, 8), ROTARY_POSITIONS),
    rotary(normal(2, 5, 32), ROTARY_POSITIONS, {"interleaved": 1}),
    rotary(normal(2, 5, 32), ROTARY_POSITIONS, {"num_heads": 2, "rotary_embedding_dim": 8}),
    rotary(normal(2, 4, 5, 8), np.array([3], np.int64)),
    rotary(normal(2, 5, 32), np.array([2], np.int64), {"interleaved": 1}),
    rotary(normal(2, 4, 5, 8), ROTARY_POSITIONS, {"scale": 2.0}, refused="a scale"),
    rotary(normal(2, 5, 32), ROTARY_POSITIONS, {"is_packed_batching": 1},
           refused="is_packed_batching"),
    rotary(normal(2, 4, 5, 8), STREAMS, {"mrope_section": [2, 1, 1]}, op="MRotaryEmbedding"),
    rotary(normal(2, 5, 32), STREAMS, {"mrope_section": [2, 1, 1], "mrope_layout": 1, "num_heads": 4},
           op="MRotaryEmbedding"),
    rotary(normal(2, 5, 32), STREAMS,
           {"mrope_section": [1, 2, 1], "num_heads": 2, "rotary_embedding_dim": 8, "interleaved": 1},
           op="MRotaryEmbedding"),
]
