"""Recurrent mixers and their gates; norms by branch and of a skip connection; samples, pools and inverses."""

import numpy as np

from contrib_case import Case, integers, normal, scalar
from contrib_layers import group_norm


def linear_attention(rule, heads, shared, tokens, past=False, decay=0, beta=0, **attributes):
    """decay, beta: their last sizes; 0 where the rule has none."""
    key = normal(2, tokens, shared * 4)
    key /= np.linalg.norm(key.reshape(2, tokens, shared, 4), axis=-1).repeat(4, -1)
    inputs = [normal(2, tokens, heads * 4), key, normal(2, tokens, shared * 6),
              normal(2, shared, 4, 6) if past else None,
              -np.abs(normal(2, tokens, decay)) if decay else None,
              np.abs(normal(2, tokens, beta)) % 1 if beta else None]
    while inputs[-1] is None:
        inputs.pop()
    return Case("LinearAttention", inputs,
                {"update_rule": rule, "q_num_heads": heads, "kv_num_heads": shared, **attributes},
                ["y", "state"])


def convolution(length, taps, past=False, bias=True, trailing=(6,), **attributes):
    state = (taps - 1) * attributes.get("dilation", 1)
    last, channels = attributes.get("channels_last"), int(np.prod(trailing))
    shape = (lambda n: (2, n, *trailing)) if last else (lambda n: (2, channels, n))
    inputs = [normal(*shape(length)), normal(channels, 1, taps), normal(channels) if bias else None,
              normal(*shape(state)) if past else None]
    while inputs[-1] is None:
        inputs.pop()
    return Case("CausalConvWithState", inputs, attributes, ["y", "state"])


def skip_group_norm(last, skip, bias):
    plain = group_norm(last, 1)
    x, gamma, beta = plain.inputs
    channels = x.shape[3 if last else 1]
    skips = normal(*x.shape) if skip == "whole" else normal(x.shape[0], channels)
    biases = normal(channels) if bias else np.zeros(channels, np.float32)
    places = (1, 2) if last else (2, 3)

    def expected(x, gamma, beta, skips, *_):
        wide = skips if skips.ndim == 4 else np.expand_dims(skips, places)
        total = x + wide + (biases if last else biases[:, None, None])
        return [*plain.expected(total, gamma, beta), total]
    inputs = [x, gamma, beta, skips] + ([biases] if bias else [])
    return Case("SkipGroupNorm", inputs, plain.attributes, ["y", "sum"], expected=expected,
                fused="row")


IMAGE, PLACES = normal(2, 3, 5, 6), normal(2, 4, 4, 2)
BYTES = integers(np.uint8, 0, 256, 1, 7, 6, 3)

MIXERS = [
    linear_attention("linear", 2, 2, 5),
    linear_attention("gated", 4, 2, 5, past=True, decay=2),
    linear_attention("gated", 2, 2, 3, decay=8, scale=0.5),
    linear_attention("delta", 2, 1, 4, past=True, beta=1),
    linear_attention("gated_delta", 4, 2, 6, past=True, decay=2, beta=2),
    linear_attention("gated_delta", 2, 2, 1, past=True, decay=2, beta=2),
    Case("LinearAttention", [normal(1, 2, 8)] * 3,
         {"update_rule": "linear", "q_num_heads": 2, "kv_num_heads": 2, "state_window": 2},
         ["y", "state"], refused="state_window"),
    Case("LinearAttentionGate", [normal(2, 3, 4), normal(4), normal(4), normal(2, 3, 4)], {},
         ["decay", "beta"]),
    Case("LinearAttentionGate", [normal(2, 3, 4), normal(4), normal(4)], {}, ["decay"]),
    convolution(5, 4),
    convolution(1, 4, past=True, activation="silu"),
    convolution(5, 3, past=True, bias=False, dilation=2),
    convolution(2, 1, activation="swish"),
    convolution(5, 3, past=True, channels_last=1),
    convolution(4, 3, channels_last=1, trailing=(2, 3), activation="silu"),
    Case("CausalConvWithState", [normal(1, 2, 3, 3), normal(2, 1, 2, 2)], {"ndim": 2},
         ["y", "state"], refused="ndim other than 1"),
    Case("GatedAdd", [normal(2, 3, 8), normal(2, 3, 8), normal(2, 3, 1)]),
    Case("ScaledSiLU", [normal(3, 8)], {"alpha": 0.7}),
    Case("ScaledSiLU", [normal(3, 8), scalar(1.3)]),
]

OTHERS = [
    Case("BranchwiseRMSNorm", [normal(2, 3, 4, 8)], fused="row"),
    Case("BranchwiseRMSNorm", [normal(2, 3, 4, 8), normal(4, 8)], {"epsilon": 1e-3}),
    Case("BranchwiseRMSNorm", [normal(2, 3, 32), normal(32)], {"num_branches": 4}),
    Case("BranchwiseRMSNorm", [normal(2, 3, 32), normal(8)], {"num_branches": 4}),
    skip_group_norm(1, "whole", True),
    skip_group_norm(1, "channels", False),
    skip_group_norm(0, "channels", True),
    Case("GridSample", [IMAGE, PLACES]),
    Case("GridSample", [IMAGE, PLACES], {"mode": "nearest", "padding_mode": "border"}),
    Case("GridSample", [IMAGE, PLACES],
         {"mode": "bicubic", "padding_mode": "reflection", "align_corners": 1}),
    Case("NhwcMaxPool", [BYTES], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    Case("NhwcMaxPool", [BYTES.view(np.int8)], {"kernel_shape": [2, 2], "ceil_mode": 1}),
    Case("Inverse", [normal(5, 5)]),
    Case("Inverse", [normal(2, 3, 4, 4)]),
    Case("Inverse", [normal(70, 70).astype(np.float64)]),
    Case("Inverse", [np.array([[[0, 2], [4, 0]], [[1e-9, 1], [1, 1]]], np.float32)]),
]

CASES = MIXERS + OTHERS
