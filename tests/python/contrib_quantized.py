"""Operators on quantised tensors and on weights of few bits."""

import numpy as np
from onnx import TensorProto

from contrib_case import WEIGHTS, Case, integers, normal, packed, scalar

U8, I8, U16, I16 = np.uint8, np.int8, np.uint16, np.int16


def bytes_of(dtype, *shape):
    return integers(dtype, *(WEIGHTS if dtype == I8 else (0, 256)), *shape)


def given(dtype, *shape, scale=0.0625, zero=5):
    """A tensor with its scale and zero point."""
    return [bytes_of(dtype, *shape), scalar(scale), scalar(zero, dtype)]


def target(dtype, scale=0.25, zero=7):
    return [scalar(scale), scalar(zero, dtype)]


LINEAR = [
    Case("QuantizeLinear", [normal(3, 4), scalar(0.125), scalar(9, U8)]),
    Case("QuantizeLinear", [normal(3, 4), scalar(0.001), scalar(300, U16)]),
    Case("QuantizeLinear", [normal(3, 4), np.array([0.1, 0.2, 0.3], np.float32),
                            np.array([1, -2, 3], I16)], {"axis": 0}),
    Case("QuantizeLinear", [normal(3, 4), scalar(0.125)]),
    Case("DequantizeLinear", [bytes_of(I8, 3, 4), scalar(0.125), scalar(-3, I8)]),
    Case("DequantizeLinear", [integers(I16, -999, 999, 3, 4), scalar(0.001), scalar(30, I16)]),
    Case("DequantizeLinear", [integers(np.int32, -99, 99, 3, 4), scalar(0.01)]),
    Case("DequantizeLinear", [bytes_of(U8, 3, 4), np.array([0.1, 0.2, 0.3, 0.4], np.float32),
                              np.array([1, 2, 3, 4], U8)], {"axis": 1}),
    Case("QLinearAdd", given(U8, 3, 4) + given(U8, 4) + target(U8, 0.23)),
    Case("QLinearAdd", given(I8, 3, 4) + given(I8, 3, 4, scale=0.5) + target(I8, 0.37)),
    Case("QLinearMul", given(U8, 3, 4) + given(U8, 3, 4, scale=0.5) + target(U8, 0.83)),
    Case("QLinearMul", given(I8, 3, 4) + given(I8, 3, 1) + target(I8, 0.2171)),
    Case("QLinearSigmoid", given(U8, 3, 4) + target(U8, 1 / 256, 0)),
    Case("QLinearSigmoid", [bytes_of(I8, 3, 4), scalar(0.03), None, scalar(1 / 256),
                            scalar(-128, I8)], constants=(1, 3, 4)),
    Case("QLinearLeakyRelu", given(U8, 3, 4, zero=128) + target(U8, 0.0625, 128), {"alpha": 0.5}),
    Case("QLinearSoftmax", given(U8, 3, 8, scale=0.02) + target(U8, 1 / 256, 0),
         {"opset": 13, "axis": -1}, constants=(1, 2, 3, 4)),
    Case("QLinearSoftmax", given(U8, 3, 2, 4, scale=0.02) + target(U8, 1 / 256, 0),
         {"opset": 11, "axis": 1}, constants=(1, 2, 3, 4)),
    Case("QLinearConcat", target(U8) + given(U8, 2, 4) + given(U8, 2, 3, scale=0.5), {"axis": 1},
         constants=(0, 1, 3, 4, 6, 7)),
    Case("QLinearWhere", [integers(bool, 0, 2, 3, 4)] + given(U8, 3, 4) + given(U8, 4) + target(U8),
         constants=(2, 3, 5, 6, 7, 8)),
    Case("QLinearAveragePool", given(U8, 1, 3, 6, 6) + target(U8, 0.071, 3),
         {"kernel_shape": [2, 2], "strides": [2, 2]}, constants=(1, 2, 3, 4)),
    Case("QLinearAveragePool", given(U8, 1, 6, 6, 3) + target(U8, 0.071, 3),
         {"kernel_shape": [2, 2], "channels_last": 1}, constants=(1, 2, 3, 4)),
    Case("QLinearGlobalAveragePool", given(U8, 1, 3, 4, 4) + target(U8, 0.0625, 3),
         {"channels_last": 0}, constants=(1, 2, 3, 4)),
    Case("QLinearGlobalAveragePool", given(U8, 1, 4, 4, 3) + target(U8, 0.0625, 3),
         {"channels_last": 1}, constants=(1, 2, 3, 4)),
    Case("QLinearConv", given(U8, 1, 3, 5, 5) + given(U8, 4, 3, 3, 3) + target(U8, 64.0),
         {"pads": [1, 1, 1, 1]}, constants=(1, 2, 3, 4, 5, 6, 7)),
    Case("QLinearConv", given(U8, 1, 5, 5, 3) + given(I8, 4, 3, 3, 3) + target(U8, 64.0) +
         [integers(np.int32, -9, 9, 4)], {"channels_last": 1},
         constants=(1, 2, 3, 4, 5, 6, 7, 8)),
]



def quantized_product(a, b, *, k=70, rows=(), columns=(), zeros=(5, 5)):
    """QLinearMatMul of a[..., m, k] and b[..., k, n]; sizes of scales by row and by column."""
    (a_type, *a_dims), (b_type, *b_dims) = a, b
    left = [bytes_of(a_type, *a_dims, k), np.full(rows, 0.0625, np.float32),
            np.full(rows, zeros[0], a_type)]
    right = [bytes_of(b_type, *b_dims[:-1], k, b_dims[-1]),
             (0.01 * (1 + np.arange(columns[0]))).astype(np.float32) if columns else scalar(0.04),
             np.full(columns, zeros[1], b_type)]
    return Case("QLinearMatMul", left + right + target(a_type, 1.7), domain="")


PRODUCTS = [
    quantized_product((U8, 3), (U8, 5)),
    quantized_product((I8, 33), (I8, 17), zeros=(-3, 0)),
    quantized_product((U8, 2, 3), (I8, 5), k=300, zeros=(128, 0)),
    quantized_product((U8, 2, 3), (I8, 2, 5), k=7),
    quantized_product((U8, 9), (I8, 65), columns=(65,), zeros=(120, 1)),
    Case("DynamicQuantizeMatMul", [normal(3, 8), bytes_of(U8, 8, 5), scalar(0.01),
                                   scalar(99, U8)]),
    Case("DynamicQuantizeMatMul", [normal(2, 3, 8), bytes_of(I8, 8, 5),
                                   normal(5), None, normal(5)]),
    Case("DynamicQuantizeMatMul", [normal(3, 8), bytes_of(I8, 8, 5), normal(5),
                                   bytes_of(I8, 5), normal(5)], constants=(1, 2, 3)),
    Case("MatMulIntegerToFloat", [bytes_of(U8, 3, 8), bytes_of(I8, 8, 5), scalar(0.1), normal(5),
                                  scalar(120, U8), bytes_of(I8, 5), normal(5)]),
    Case("MatMulIntegerToFloat", [bytes_of(U8, 2, 3, 8), bytes_of(U8, 8, 5), scalar(0.1),
                                  scalar(0.2)]),
    Case("MatMulIntegerToFloat", [bytes_of(U8, 3, 8), bytes_of(U8, 8, 5), scalar(0.1),
                                  scalar(0.2), None, scalar(100, U8)]),
    Case("QGemm", given(U8, 3, 8) + given(I8, 8, 5) + [integers(np.int32, -99, 99, 5)] +
         target(U8, 32.0), {"alpha": 0.5}, constants=(1, 2, 4, 5, 7, 8)),
    Case("QGemm", given(U8, 8, 3) + given(U8, 5, 8), {"transA": 1, "transB": 1},
         constants=(1, 2, 4, 5)),
    Case("QEmbedLayerNormalization",
         [np.array([[1, 4, 2], [0, 3, 5]], np.int32), np.array([[0, 0, 1], [0, 1, 1]], np.int32)] +
         [bytes_of(U8, 6, 8), bytes_of(U8, 4, 8), bytes_of(U8, 2, 8), bytes_of(U8, 8),
          bytes_of(U8, 8), None] + [scalar(s) for s in (0.01, 0.02, 0.03, 0.01, 0.02)] +
         [scalar(z, U8) for z in (128, 120, 110, 9, 128)], {"epsilon": 1e-5}, ["y", "mask_index"],
         compared=["y"]),
]


def nbits(rows, bits, inputs, k=32, n=5, **more):
    return Case("MatMulNBits", [normal(*rows, k)] + inputs,
                {"K": k, "N": n, "bits": bits, "block_size": 16}, **more)


def gathered(bits, inputs, attributes=None, **more):
    return Case("GatherBlockQuantized", inputs, {"bits": bits, "block_size": 16, **(attributes or {})},
                constants=(0, 2, 3), **more)


def experts(bits, block=0, zeros=False, gated=False, **attributes):
    """QMoE of 4 experts, 32 inputs and 16 hidden elements."""
    def weight(n, k):
        scales = normal(4, n, k // block) if block else normal(4, n)
        blocks = (-(-k // block * bits // 8),) if block else ()
        zero = packed(4, n, *blocks) if block else packed(4, -(-n * bits // 8))
        return [packed(4, n, k * bits // 8), scales * 0.1, zero if zeros else None]
    w1, w2 = weight(32 if gated else 16, 32), weight(32, 16)
    inputs = [normal(7, 32), normal(7, 4), w1[0], w1[1], normal(4, 32 if gated else 16), w2[0],
              w2[1], normal(4, 32), None, None, None, w1[2], w2[2]]
    extra = {"block_size": block} if block else {}
    # ONNX Runtime's CPU kernel normalises whatever the attribute says.
    attributes = {"k": 2, "expert_weight_bits": bits, "normalize_routing_weights": 1, **extra,
                  **attributes}
    return Case("QMoE", inputs, attributes,
                constants=(2, 3, 4, 5, 6, 7, 11, 12), tolerance=1e-3)


WEIGHTS = [
    nbits((3,), 4, [packed(5, 2, 8), normal(5, 2)]),
    nbits((2, 3), 4, [packed(5, 3, 8), normal(5, 3), packed(5, 2)], k=40),
    nbits((3,), 4, [packed(5, 2, 8), normal(5, 2), normal(5, 2)]),
    nbits((3,), 4, [packed(5, 2, 8), normal(5, 2), None, None, normal(5)]),
    nbits((3,), 8, [packed(5, 2, 16), normal(5, 2), packed(5, 2)]),
    nbits((3,), 8, [packed(5, 2, 16), normal(5, 2)]),
    nbits((3,), 2, [packed(5, 2, 4), normal(5, 2), packed(5, 1)]),
    nbits((3,), 4, [packed(5, 2, 8), normal(5, 2), normal(5, 2),
                    np.tile(np.array([0, 1], np.int32), 16)], constants=(1, 2, 3, 4)),
    nbits((3,), 4, [packed(5, 2, 8), normal(5, 2), None,
                    np.tile(np.array([1, 0], np.int32), 16)], constants=(1, 2, 3, 4)),
    nbits((3,), 5, [packed(5, 2, 10), normal(5, 2)], refused="number of bits"),
    Case("MatMulBnb4", [normal(3, 32), packed(80), normal(10)],
         {"K": 32, "N": 5, "block_size": 16, "quant_type": 1}, constants=(1, 2)),
    Case("MatMulBnb4", [normal(3, 32), packed(80), normal(10)],
         {"K": 32, "N": 5, "block_size": 16, "quant_type": 0}, constants=(1, 2)),
    gathered(4, [packed(6, 16), np.array([[1, 5], [0, 2]]), normal(6, 2)]),
    gathered(4, [packed(6, 24), np.array([1, 5], np.int32), normal(6, 3), packed(6, 2)]),
    gathered(8, [packed(6, 32), np.array([1, 5]), normal(6, 2), packed(6, 2)]),
    gathered(8, [packed(32, 6), np.array([1, 5]), normal(2, 6)],
             {"gather_axis": 0, "quantize_axis": 0}, refused="along the quantised axis"),
    experts(4),
    experts(4, zeros=True),
    experts(8, activation_type="silu"),
    experts(4, block=16, zeros=True, activation_type="gelu"),
    experts(4, gated=True, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
            activation_beta=1.0),
]

CASES = LINEAR + PRODUCTS + WEIGHTS
