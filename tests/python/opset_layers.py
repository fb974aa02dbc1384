"""Forms of the layer operators: convolutions, pools, normalisations, recurrences, quantisation."""

import numpy as np

from opset_forms import BATCH_STATE, IMAGE, SIGNAL, X, Form, Known, f, i, k

U8, I8 = np.uint8, np.int8
BOXES = np.array([[0, 0, 4, 4], [1, 1, 5, 5]], np.float32)
SUPPRESSION = [np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]], np.float32), np.array([[[0.9, 0.75, 0.6]]], np.float32),
               Known(i(3)), Known(np.array([0.5], np.float32))]


def recurrent(op, gates, bias, **attributes):
    """Sequence 4, batch 2, input 3, hidden 5."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    inputs = [f(4, 2, 3), f(directions, gates * 5, 3) * 0.5, f(directions, gates * 5, 5) * 0.5]
    if bias:
        inputs += [f(directions, 2 * gates * 5), np.array([4, 2], np.int32), f(directions, 2, 5)]
    return Form(op, inputs, {"hidden_size": 5, **attributes}, outputs=3 if op == "LSTM" else 2)


LAYERS = [
    Form("BatchNormalization", [IMAGE] + BATCH_STATE, {"epsilon": 1e-3}),
    Form("BatchNormalization", [f(4, 3)] + BATCH_STATE), Form("InstanceNormalization", [IMAGE, f(3), f(3)]),
    Form("LRN", [IMAGE], {"size": 3}), Form("MeanVarianceNormalization", [IMAGE], first=9),
    Form("LayerNormalization", [X, f(3, 4), f(3, 4)], {"axis": 1}, first=17, outputs=3),
    Form("GroupNormalization", [f(2, 4, 5), f(2), f(2)], {"num_groups": 2}, first=18, last=20),
    Form("GroupNormalization", [f(2, 4, 5), f(4), f(4)], {"num_groups": 2}, first=21),
    Form("RMSNormalization", [X, f(4)], first=23), Form("Dropout", [X], {"ratio": 0.3}, last=11),
    Form("Dropout", [X, Known(np.float32(0.3))], first=12), Form("Dropout", [X], {}, first=12, outputs=2),
    Form("Gemm", [f(3, 4), f(5, 4), f(5)], {"transB": 1, "alpha": 0.5}), Form("Gemm", [f(3, 4), f(4, 5)], {}, first=11),
    Form("Gemm", [np.array([[1, 2]], np.int32), np.array([[3], [4]], np.int32), np.array([1], np.int32)], first=9),
    Form("MatMul", [X, f(4, 5)]), Form("MatMul", [i(1, 2), i(3, 4)], first=9),
    Form("Conv", [IMAGE, f(4, 3, 3, 3), f(4)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}), Form("Conv", [SIGNAL, f(6, 1, 3)], {"group": 3, "auto_pad": "SAME_LOWER"}),
    Form("ConvTranspose", [IMAGE, f(3, 4, 3, 3)], {"strides": [2, 2], "output_padding": [1, 1]}),
    Form("ConvTranspose", [IMAGE, f(3, 2, 3, 3)], {"strides": [2, 2], "output_shape": [12, 12]}),
    Form("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}), Form("MaxPool", [IMAGE], {"kernel_shape": [2, 2]}, first=8, outputs=2),
    Form("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, first=10), Form("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 2]}, first=10),
    Form("MaxPool", [(f(1, 2, 6) * 50).astype(I8)], {"kernel_shape": [2]}, first=12),
    Form("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), Form("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Form("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, first=10), Form("AveragePool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 2]}, first=19),
    Form("LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 2}), Form("GlobalAveragePool", [IMAGE]), Form("GlobalMaxPool", [IMAGE]), Form("GlobalLpPool", [IMAGE], {"p": 1}, last=21), Form("GlobalLpPool", [IMAGE], {"p": 3}, last=21), Form("GlobalLpPool", [IMAGE], last=21),
    Form("MaxUnpool", [f(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]])], {"kernel_shape": [2, 2], "strides": [2, 2]}, first=9),
    Form("RoiAlign", [IMAGE, BOXES, i(0, 0)], {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, first=10),
    Form("RoiAlign", [IMAGE, BOXES, i(0, 0)], {"output_height": 3, "output_width": 1, "sampling_ratio": 9}, first=10),
    Form("RoiAlign", [IMAGE, BOXES, i(0, 0)], {"output_height": 2, "output_width": 2}, first=16),
    Form("NonMaxSuppression", SUPPRESSION, first=10), Form("GridSample", [f(1, 2, 4, 4), np.tanh(f(1, 3, 3, 2))], first=16),
    Form("GridSample", [f(1, 2, 4, 4), np.tanh(f(1, 3, 3, 2))], {"mode": "linear", "padding_mode": "border"}, first=20),
    Form("NegativeLogLikelihoodLoss", [f(3, 5), i(1, 0, 4)], {"reduction": "mean"}, first=12), Form("SoftmaxCrossEntropyLoss", [f(3, 5), i(1, 0, 4)], first=12, outputs=2),
    recurrent("RNN", 1, False), recurrent("RNN", 1, True, direction="reverse", activations=["Relu"]), recurrent("GRU", 3, False), recurrent("GRU", 3, True, direction="bidirectional"),
    recurrent("GRU", 3, True, linear_before_reset=1), recurrent("LSTM", 4, False), recurrent("LSTM", 4, True, direction="bidirectional"), recurrent("LSTM", 4, True, clip=0.5),
    Form("RNN", [f(2, 1, 3), f(1, 5, 3), f(1, 5, 5)], {"hidden_size": 5, "layout": 1}, first=14, outputs=2),
    Form("MatMulInteger", [np.array([[1, 200]], U8), np.array([[3], [4]], U8), Known(np.array(7, U8)), Known(np.array(2, U8))], first=10),
    Form("ConvInteger", [(np.abs(f(1, 1, 4, 4)) * 50).astype(U8), (np.abs(f(1, 1, 2, 2)) * 50).astype(U8), Known(np.array(7, U8))], first=10),
    Form("DynamicQuantizeLinear", [X], first=11, outputs=3),
    Form("QuantizeLinear", [X, Known(np.float32(0.017)), Known(np.array(9, U8))], first=10), Form("QuantizeLinear", [X, Known(np.float32(0.017))], first=10),
    Form("QuantizeLinear", [X, Known(np.array([0.01, 0.02, 0.03], np.float32)), Known(np.array([1, 2, 3], I8))], {"axis": 1}, first=13),
    Form("QuantizeLinear", [X * 9, Known(np.float32(0.1)), Known(np.array(300, np.uint16))], first=21),
    Form("QuantizeLinear", [X, Known(np.abs(f(2, 3, 2)) + 0.01)], {"axis": 2, "block_size": 2, "output_dtype": 3}, first=21),
    Form("DequantizeLinear", [np.array([1, 200], U8), Known(np.float32(0.1)), Known(np.array(9, U8))], first=10),
    Form("DequantizeLinear", [np.array([1, -200], np.int32), Known(np.float32(0.1))], first=10),
    Form("DequantizeLinear", [np.array([[1, 2], [3, 4]], I8), Known(np.array([0.1, 0.2], np.float32)), Known(np.array([1, 2], I8))], {"axis": 0}, first=13),
    Form("DequantizeLinear", [np.array([[1, 2, 3, 4]], I8), Known(np.array([[0.1, 0.2]], np.float32))], {"axis": 1, "block_size": 2}, first=21),
    Form("QLinearMatMul", [np.array([[1, 200]], U8), Known(np.float32(0.1)), Known(np.array(3, U8)), np.array([[3], [4]], U8), Known(np.float32(0.2)), Known(np.array(4, U8)), Known(np.float32(0.3)), Known(np.array(9, U8))], first=10),
    Form("QLinearConv", [(np.abs(f(1, 1, 4, 4)) * 50).astype(U8), Known(np.float32(0.1)), Known(np.array(3, U8)), Known((np.abs(f(1, 1, 2, 2)) * 50).astype(U8)), Known(np.float32(0.2)), Known(np.array(4, U8)), Known(np.float32(3.1)), Known(np.array(9, U8))], first=10),
    Form("Attention", [f(2, 2, 5, 8), f(2, 2, 6, 8), f(2, 2, 6, 8)], {}, first=23), Form("Attention", [f(2, 2, 5, 8), f(2, 2, 5, 8), f(2, 2, 5, 8)], {"is_causal": 1}, first=23),
    Form("Attention", [f(2, 5, 16), f(2, 6, 8), f(2, 6, 8), np.tri(5, 6, 1) > 0], {"q_num_heads": 4, "kv_num_heads": 2, "softcap": 2.0}, first=23),
    Form("Attention", [f(2, 2, 2, 8), f(2, 2, 2, 8), f(2, 2, 2, 8), None, f(2, 2, 4, 8), f(2, 2, 4, 8)], {}, first=23, outputs=3),
    Form("Attention", [f(2, 2, 5, 8), f(2, 2, 6, 8), f(2, 2, 6, 8), None, None, None, i(4, 6)], {}, first=24),
    Form("RotaryEmbedding", [f(2, 4, 5, 8), f(9, 4), f(9, 4), np.arange(10).reshape(2, 5) % 9], {}, first=23),
    Form("TensorScatter", [f(2, 4, 6, 3), f(2, 4, 2, 3), i(1, 3)], {}, first=24),
    Form("DFT", [f(1, 8, 1)], {"axis": 1}, first=17, last=19), Form("DFT", [f(1, 8, 1), None, Known(np.int64(1))], {"onesided": 1}, first=20),
    Form("StringNormalizer", [np.array(["The", "cat"])], {"case_change_action": "LOWER", "is_case_sensitive": 1}, first=10),
    Form("TfIdfVectorizer", [i(1, 2, 3)], {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [2, 3]}, first=9),
]
