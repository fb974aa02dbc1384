"""Attention, QAttention, MultiHeadAttention: every form of their masks, caches and packings.

A single query's scores are a product of their own, and its region is one of class product; three
keys or fewer are no axis to stream.
"""

import numpy as np

from contrib_case import WEIGHTS, Case, integers, last, normal, scalar

CACHE = ["y", "present_key", "present_value"]
FILTER = {"mask_filter_value": -1e4}
KEYS = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
LEFT = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]], np.int32)
PAIRS = np.tril(np.ones((2, 5, 5), np.int32), 1)
PAIRS[1, 3:, 0] = 0
LONG_KEYS = np.array([[1, 1, 0, 1, 1, 1, 0], [1] * 7], np.int32)


def multi(inputs, attributes=None, outputs=("y",), **more):
    """MultiHeadAttention with 4 heads; the region of its attention must be found."""
    more.setdefault("fused", "attention")
    return Case("MultiHeadAttention", inputs, {"num_heads": 4, **(attributes or {})}, list(outputs),
                **more)


def plain(*lengths):
    """Query, key and value of 4 heads of 8 elements."""
    return [normal(2, length, 32) for length in lengths]


def past(length, batch=2):
    return [normal(batch, 4, length, 8), normal(batch, 4, length, 8)]


def packed_qkv(bias):
    x = normal(2, 5, 4, 3, 8)
    apart = [np.ascontiguousarray(x[:, :, :, k].reshape(2, 5, 32)) for k in range(3)]
    b = [normal(96)] if bias else []
    return multi([x, None, None] + b, like=multi(apart + b))


def packed_kv():
    query, x = normal(2, 5, 32), normal(2, 7, 4, 2, 8)
    apart = [np.ascontiguousarray(x[:, :, :, k].reshape(2, 7, 32)) for k in range(2)]
    return multi([query, x], like=multi([query] + apart))


MULTI = [
    multi(plain(5, 7, 7)),
    multi([normal(2, 5, 32), normal(2, 7, 32), normal(2, 7, 48)]),
    multi(plain(5, 5, 5) + [normal(96)]),
    multi([normal(2, 5, 32), normal(2, 7, 32), normal(2, 7, 48), normal(112)]),
    multi(plain(5, 5, 5), {"scale": 0.3, "unidirectional": 1}),
    multi(plain(5, 5, 5) + [normal(96), KEYS, normal(2, 4, 5, 5)], {"scale": 0.3}),
    multi(plain(5, 5, 5) + [None, last(3, 5)]),
    multi(plain(5, 5, 5) + [None, LEFT], {"unidirectional": 1}),
    multi(plain(5, 5, 5) + [None, PAIRS], FILTER),
    multi(plain(5, 7, 7) + [None, LONG_KEYS], {"mask_filter_value": -3.0}),
    multi(plain(5, 5, 5) + [None, None, normal(1, 1, 5, 5)]),
    multi(plain(5, 5, 5) + [None, None, normal(2, 1, 5, 5)]),
    multi(plain(5, 5, 5) + [None, None, normal(1, 4, 5, 5)], {"unidirectional": 1}),
    multi([normal(2, 5, 32), normal(2, 4, 7, 8), normal(2, 4, 7, 8)]),
    multi([normal(2, 5, 32), normal(2, 4, 7, 8), normal(2, 4, 7, 8), None, LONG_KEYS]),
    multi(plain(5, 5, 5), outputs=CACHE),
    multi(plain(5, 5, 5) + [None, None, None] + past(3), outputs=CACHE),
    multi(plain(2, 2, 2) + [None, LONG_KEYS, None] + past(5), outputs=CACHE),
    multi(plain(2, 2, 2) + [normal(96), LONG_KEYS, normal(2, 4, 2, 7)] + past(5),
          {"unidirectional": 1}, CACHE),
    multi(plain(1, 1, 1) + [None, None, normal(1, 4, 1, 7)] + past(6), outputs=CACHE,
          fused="attention"),
    multi(plain(3, 3, 3) + [None, None, None] + past(0), {"unidirectional": 1}, CACHE,
          fused="row"),
    multi(plain(5, 7, 7), outputs=["y", "", "", "qk"], fused="", types={"qk": 1}),
    packed_qkv(False),
    packed_qkv(True),
    packed_kv(),
    multi(plain(5, 5, 5) + [None, last(3, 4, 0, 5, 10, 0, 5, 10)], refused="cumulated lengths",
          fused=""),
    multi(plain(1, 1, 1) + [None, None, None] + past(6) + [last(5)], refused="shared buffer",
          fused=""),
]


def projected(inputs, attributes=None, outputs=("y",), **more):
    """Attention with 4 heads of a [2, length, 16] input, which it projects."""
    more.setdefault("fused", "attention")
    return Case("Attention", inputs, {"num_heads": 4, **(attributes or {})}, list(outputs), **more)


def layer(length, hidden=32):
    return [normal(2, length, 16), normal(16, 3 * hidden), normal(3 * hidden)]


def square_mask():
    x, past_state, mask = layer(2), normal(2, 2, 4, 3, 8), np.tril(np.ones((2, 1, 9, 9), np.int32))
    rows = np.ascontiguousarray(mask[:, 0, 3:5, :5])
    return projected(x + [mask, past_state], outputs=["y", "present"],
                     like=projected(x + [rows, past_state], outputs=["y", "present"]))


UNBIASED = layer(5)[:2]
STATE = ["y", "present"]
PROJECTED = [
    projected(layer(5)),
    projected(layer(5, 48)),
    projected(UNBIASED + [None], like=projected(UNBIASED + [np.zeros(96, np.float32)])),
    projected(layer(5), {"num_heads": 2, "scale": 0.2}),
    projected(layer(5), {"unidirectional": 1}),
    projected(layer(5) + [KEYS]),
    projected(layer(5) + [last(3, 4)]),
    projected(layer(5) + [last(4, 5, 1, 0)]),
    projected(layer(5) + [last(5, 5, 2, 1)], {"unidirectional": 1}),
    projected(layer(5) + [LEFT], {"unidirectional": 1}),
    projected(layer(5) + [PAIRS], {"unidirectional": 1}),
    projected(layer(5) + [PAIRS], FILTER),
    projected(layer(5) + [KEYS, None, normal(2, 4, 5, 5)], {"mask_filter_value": -2.0}),
    projected(layer(5) + [None, None, normal(1, 1, 5, 5)]),
    projected([normal(2, 5, 16), normal(16, 96), normal(96)], {"qkv_hidden_sizes": [32, 32, 32]}),
    projected([normal(2, 5, 16), normal(16, 112), normal(112)], {"qkv_hidden_sizes": [32, 32, 48]}),
    projected(layer(5), outputs=STATE),
    projected(layer(2) + [None, normal(2, 2, 4, 3, 8)], {"unidirectional": 1}, STATE),
    projected(layer(2) + [LONG_KEYS, normal(2, 2, 4, 5, 8)], {"unidirectional": 1}, STATE),
    projected(layer(1) + [None, normal(2, 2, 4, 8, 8)], {}, STATE, fused="attention"),
    projected(layer(2) + [last(4, 5), normal(2, 2, 4, 3, 8)], {}, STATE),
    square_mask(),
    projected(layer(5), {"do_rotary": 1}, refused="do_rotary", fused=""),
    projected(layer(1) + [None, normal(2, 2, 4, 9, 8), None, last(3)],
              {"past_present_share_buffer": 1}, STATE, refused="shared buffer", fused=""),
]


def quantized(mask=None, past_state=None, weight=np.uint8, columns=False, attributes=None):
    x = integers(np.uint8, 0, 255, 2, 5, 16)
    w = integers(weight, *(WEIGHTS if weight == np.int8 else (0, 100)), 16, 96)
    scale = np.full(96, 0.02, np.float32) if columns else scalar(0.02)
    zero = np.full(96, 3, weight) if columns else scalar(3, weight)
    inputs = [x, w, normal(96), scalar(0.01), scale, mask, scalar(120, np.uint8), zero, past_state]
    return Case("QAttention", inputs, {"num_heads": 4, **(attributes or {})},
                ["y"] if past_state is None else STATE, constants=(1, 4, 7), fused="attention")


CASES = MULTI + PROJECTED + [
    quantized(),
    quantized(last(3, 5)),
    quantized(weight=np.int8, columns=True, attributes={"unidirectional": 1}),
    quantized(past_state=normal(2, 2, 4, 3, 8), attributes={"unidirectional": 1}),
]
