"""Operators that read at positions which are data, for positions_test.py: each the operator, its inputs, the number of
the input that holds the positions, values that it may not hold, and the size that a message then names."""

import collections

import numpy as np

Case = collections.namedtuple("Case", "op inputs at bad size attributes domain count refused",
                              defaults=({}, "", 1, ""))
GENERATOR = np.random.default_rng(7)


def floats(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


CASES = [
    Case("Gather", [floats(5, 3), ints(0, -5, 4)], 1, (5, -6, 2**40), 5),
    Case("Gather", [floats(5, 3), ints(2, -1, dtype=np.int32)], 1, (3, -4), 3, {"axis": 1}),
    Case("Gather", [floats(5), ints(0, 1, 2, 3).reshape(2, 2)], 1, (5, -6), 5),
    Case("Gather", [floats(7, 2), np.array(-7)], 1, (7, -8), 7),
    Case("GatherElements", [floats(4, 3), ints(0, -1, 2, 1).reshape(2, 2)], 1, (3, -4), 3, {"axis": 1}),
    Case("GatherElements", [floats(4, 3), ints(3, -4, dtype=np.int32).reshape(1, 2)], 1, (4, -5), 4),
    Case("GatherND", [floats(4, 3, 2), ints(0, 1, -1, -1).reshape(2, 2)], 1, (4, -5), 4),
    Case("GatherND", [floats(2, 3), ints(1, 0).reshape(2, 1)], 1, (3, -4), 3, {"batch_dims": 1}),
    Case("ReverseSequence", [floats(4, 3), ints(0, 4, 2)], 1, (5, -1), 4),
    Case("ArrayFeatureExtractor", [floats(2, 4), ints(0, 3, 1)], 1, (4,), 4, {}, "ai.onnx.ml"),
    Case("ScatterElements", [floats(4, 3), ints(3, -4).reshape(1, 2), floats(1, 2)], 1, (4, -5), 4),
    Case("ScatterND", [floats(4, 3), ints(3, -4).reshape(2, 1), floats(2, 3)], 1, (4, -5), 4),
    Case("NegativeLogLikelihoodLoss", [floats(3, 4), ints(0, 3, 1)], 1, (4,), 4),
    Case("NegativeLogLikelihoodLoss", [floats(3, 4), ints(0, -100, 1)], 1, (4,), 4,
         {"ignore_index": -100}),
    Case("SoftmaxCrossEntropyLoss", [floats(3, 4), ints(0, 3, 1)], 1, (4,), 4),
    Case("EmbedLayerNormalization",
         [ints(1, 2, 0, 3, dtype=np.int32).reshape(2, 2), None, floats(4, 8), floats(5, 8), None,
          floats(8), floats(8)], 0, (4,), 4, {}, "com.microsoft", 2),
    Case("GatherBlockQuantized",
         [GENERATOR.integers(0, 255, (4, 16)).astype(np.uint8), ints(0, 3, 1), floats(4, 1)], 1,
         (4, -5), 4, {"bits": 8, "block_size": 16, "quantize_axis": 1}, "com.microsoft"),
]
