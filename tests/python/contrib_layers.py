"""Activations, normalisations, products, mixtures of experts, old names of ai.onnx operators."""

import math

import numpy as np

from contrib_case import Case, integers, normal, scalar

IDS = np.array([[1, 4, 2], [0, 3, 5]], np.int32)
SEGMENTS = np.array([[0, 0, 1], [0, 1, 1]], np.int32)
PLACES = np.array([[1, 0, 3], [2, 2, 1]], np.int32)
TABLES = [normal(6, 8), normal(4, 8), normal(2, 8), normal(8), normal(8)]


def gelu(x):
    return (x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(np.float32)


def group_norm(last, silu):
    def expected(x, gamma, beta):
        moved = np.moveaxis(x, -1, 1) if last else x
        groups = moved.reshape(moved.shape[0], 2, -1)
        groups = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(
            groups.var(-1, keepdims=True) + 1e-5)
        y = groups.reshape(moved.shape) * gamma[:, None, None] + beta[:, None, None]
        y = y / (1 + np.exp(-y)) if silu else y
        return [np.moveaxis(y, 1, -1) if last else y]
    shape = (2, 3, 5, 4) if last else (2, 4, 3, 5)
    return Case("GroupNorm", [normal(*shape), normal(4), normal(4)],
                {"groups": 2, "activation": silu, "channels_last": last}, expected=expected,
                fused="row")


ACTIVATIONS = [
    Case("Gelu", [normal(3, 8)]),
    Case("BiasGelu", [normal(3, 8), normal(8)]),
    Case("FastGelu", [normal(3, 8)]),
    Case("FastGelu", [normal(3, 8), normal(8)]),
    Case("QuickGelu", [normal(3, 8)]),
    Case("QuickGelu", [normal(3, 8)], {"alpha": 1.0}),
    Case("BiasSplitGelu", [normal(2, 3, 8), normal(8)],
         expected=lambda x, b: [(x + b)[..., :4] * gelu((x + b)[..., 4:])]),
    Case("BiasAdd", [normal(2, 3, 8), normal(8), normal(2, 3, 8)],
         expected=lambda x, b, s: [x + b + s]),
    Case("BiasDropout", [normal(2, 3, 8), normal(8), normal(2, 3, 8)],
         expected=lambda x, b, s: [x + b + s]),
    Case("BiasDropout", [normal(2, 8), normal(8), None, scalar(0.5), np.array(True)],
         refused="training"),
]

NORMS = [
    Case("SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)], fused="row"),
    Case("SkipLayerNormalization",
         [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)], {"epsilon": 1e-3},
         ["y", "", "", "sum"], fused="row"),
    Case("SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)],
         {"epsilon": 1e-3}, ["y", "mean", "inv", "sum"],
         expected=lambda x, s, g, b: [
             (x + s - (x + s).mean(-1, keepdims=True)) /
             np.sqrt((x + s).var(-1, keepdims=True) + 1e-3) * g + b,
             (x + s).mean(-1, keepdims=True), 1 / np.sqrt((x + s).var(-1, keepdims=True) + 1e-3),
             x + s]),
    Case("SkipLayerNormalization", [normal(2, 3, 8), normal(1, 3, 8), normal(8), normal(8)]),
    Case("SkipLayerNormalization", [normal(2, 3, 8), normal(3, 8), normal(8), normal(8)]),
    Case("SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8)],
         {"epsilon": 1e-5}, ["y", "", "", "sum"], fused="row"),
    Case("SkipSimplifiedLayerNormalization",
         [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)], fused="row"),
    Case("SimplifiedLayerNormalization", [normal(2, 3, 8), normal(8)], {"epsilon": 1e-5}, domain="",
         fused="row"),
    Case("SimplifiedLayerNormalization", [normal(2, 3, 8), normal(3, 8)], {"axis": 1},
         ["y", "inv"], domain=""),
    Case("LayerNormalization", [normal(2, 3, 8), normal(8), normal(8)], {"axis": -1}, domain="",
         opset=13, fused="row"),
    Case("LayerNormalization", [normal(2, 3, 8), normal(3, 8)], {"axis": 1, "epsilon": 1e-3},
         ["y", "mean", "inv"], domain="", opset=11),
    Case("GatedRMSNorm", [normal(2, 3, 8), normal(8), normal(2, 3, 8)], fused="row"),
    Case("GatedRMSNorm", [normal(2, 3, 16), normal(8), normal(2, 3, 16)],
         {"activation": "sigmoid", "epsilon": 1e-3}),
    group_norm(1, 1),
    group_norm(0, 0),
    Case("EmbedLayerNormalization", [IDS, SEGMENTS] + TABLES, {"epsilon": 1e-5},
         ["y", "mask_index"]),
    Case("EmbedLayerNormalization", [IDS, None] + TABLES[:2] + [None] + TABLES[3:] + [SEGMENTS],
         {"epsilon": 1e-5}, ["y", "mask_index", "sum"]),
    Case("EmbedLayerNormalization", [IDS, SEGMENTS] + TABLES + [None, PLACES], {"epsilon": 1e-5},
         ["y", "mask_index"]),
]


def distances(metric):
    return Case("CDist", [normal(4, 6), normal(5, 6)], {"metric": metric})


PRODUCTS = [
    Case("FusedMatMul", [normal(2, 3, 4), normal(2, 4, 5)], {"alpha": 0.5}),
    Case("FusedMatMul", [normal(2, 4, 3), normal(2, 5, 4)], {"transA": 1, "transB": 1}),
    Case("FusedMatMul", [normal(2, 3, 4), normal(5, 4)], {"transB": 1}),
    Case("FusedMatMul", [normal(3, 2, 4), normal(2, 4, 5)], {"transBatchA": 1}),
    Case("FusedMatMul", [normal(4, 2, 6, 3), normal(2, 6, 4, 5)],
         {"transBatchA": 1, "transA": 1}),
    Case("FusedMatMul", [normal(3, 2, 4), normal(5, 2, 4)],
         {"transBatchA": 1, "transBatchB": 1, "transB": 1, "alpha": 2.0}),
    Case("TransposeMatMul", [normal(2, 4, 3), normal(2, 4, 5)], {"transA": 1, "alpha": 0.5}),
    Case("FusedMatMulActivation", [normal(2, 3, 4), normal(2, 4, 5)], {"activation": "Relu"},
         expected=lambda a, b: [np.maximum(a @ b, 0)]),
    Case("FusedGemm", [normal(3, 4), normal(4, 5), normal(5)], {"activation": "Relu"}),
    Case("FusedGemm", [normal(4, 3), normal(5, 4)],
         {"activation": "LeakyRelu", "activation_alpha": 0.3, "transA": 1, "transB": 1,
          "alpha": 0.5}),
    Case("FusedGemm", [normal(3, 4), normal(4, 5), normal(5)], {"activation": "Tanh", "beta": 2.0}),
    Case("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)],
         {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    Case("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4), normal(1, 4, 4, 4)],
         {"activation": "Sigmoid"}),
    Case("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3)],
         {"activation": "Clip", "activation_params": [0.0, 1.0], "strides": [2, 2]}),
    Case("FusedConv", [normal(1, 4, 6, 6), normal(4, 2, 3, 3)],
         {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], "group": 2}),
    Case("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3)], {"activation": "Erf"},
         refused="the activation Erf"),
    distances("euclidean"),
    distances("sqeuclidean"),
    Case("CDist", [normal(4, 6), normal(5, 6)], {"metric": "cosine"}, refused="the metric cosine"),
    Case("MoE", [normal(7, 8), normal(7, 4), normal(4, 6, 8), None, normal(4, 8, 6)],
         {"k": 2, "normalize_routing_weights": 1}),
    Case("MoE", [normal(2, 3, 8), normal(6, 4), normal(4, 6, 8), normal(4, 6), normal(4, 8, 6),
                 normal(4, 8)], {"k": 1, "activation_type": "silu"}),
    Case("MoE", [normal(7, 8), normal(7, 4), normal(4, 6, 8), normal(4, 6), normal(4, 8, 6)],
         {"k": 2, "activation_type": "gelu"}),
    Case("MoE", [normal(7, 8), normal(7, 4), normal(4, 12, 8), normal(4, 12), normal(4, 8, 6)],
         {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 1.0,
          "activation_alpha": 1.702, "activation_beta": 1.0}),
    Case("MoE", [normal(7, 8), normal(7, 4), normal(4, 6, 8), None, normal(4, 8, 6)],
         {"k": 2, "use_sparse_mixer": 1}, refused="use_sparse_mixer"),
]

LAYOUT = [
    Case("GatherND", [normal(3, 4, 5), np.array([[0, 1], [2, 3]], np.int32)]),
    Case("ExpandDims", [normal(3, 4), scalar(-1, np.int32)]),
    Case("Range", [scalar(1.0), scalar(7.0), scalar(2.0)]),
    Case("Range", [scalar(2, np.int64), scalar(7, np.int64)]),
    Case("Trilu", [normal(2, 4, 5)]),
    Case("Trilu", [normal(2, 4, 5), scalar(-1, np.int64)], {"upper": 0}),
    Case("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], {}, ["y", "index", "counts"]),
    Case("Pad", [normal(3, 4), np.array([1, 0, 2, 1])]),
    Case("Pad", [normal(3, 4), np.array([[1, 0, 2, 1]]), np.array([1.5], np.float32)]),
    Case("Pad", [normal(3, 4), np.array([1, 2, 1, 0])], {"mode": "reflect"}),
]

CASES = ACTIVATIONS + NORMS + PRODUCTS + LAYOUT
