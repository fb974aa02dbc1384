"""Writes products with constant weights of few bits, each a folder for `redfuser-bench --suite e2e
--models FOLDER`: com.microsoft.MatMulNBits, and DequantizeLinear before a MatMul. The references
are computed in fp64 with weights rounded to the type that is multiplied."""

import argparse
import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

TYPES = {"half": (T.FLOAT16, np.float16), "float": (T.FLOAT, np.float32),
         "bfloat": (T.BFLOAT16, ml_dtypes.bfloat16)}

# rows, depth, columns, and what differs from the first
PRODUCTS = {
    "int4_1x2048x2048": dict(m=1, k=2048, n=2048),
    "int4_1x2048x3072": dict(m=1, k=2048, n=3072),
    "int4_1x2048x8192": dict(m=1, k=2048, n=8192),
    "int4_1x8192x2048": dict(m=1, k=8192, n=2048),
    "int4_1x4096x14336": dict(m=1, k=4096, n=14336),
    "int4_8x2048x8192": dict(m=8, k=2048, n=8192),
    "int4_16x2048x8192": dict(m=16, k=2048, n=8192),
    "int4_64x2048x8192": dict(m=64, k=2048, n=8192),
    "int4_zeros_1x2048x8192": dict(m=1, k=2048, n=8192, zeros=True),
    "int4_block128_1x2048x8192": dict(m=1, k=2048, n=8192, block=128),
    "int4_block16_1x2048x8192": dict(m=1, k=2048, n=8192, block=16),
    "int4_gated_1x2048x8192": dict(m=1, k=2048, n=8192, gated=True),
    "int4_bfloat_1x2048x8192": dict(m=1, k=2048, n=8192, dtype="bfloat"),
    "int4_float_1x2048x8192": dict(m=1, k=2048, n=8192, dtype="float"),
    "int4_float_8x2048x8192": dict(m=8, k=2048, n=8192, dtype="float", zeros=True),
    "int8_1x2048x8192": dict(m=1, k=2048, n=8192, bits=8),
    "int8_bfloat_1x2048x8192": dict(m=1, k=2048, n=8192, bits=8, dtype="bfloat", zeros=True),
    "int8_channels_1x2048x8192": dict(m=1, k=2048, n=8192, bits=8, form="channels"),
    "int8_channels_float_4x2048x8192": dict(m=4, k=2048, n=8192, bits=8, form="channels",
                                            dtype="float"),
    "int4_blocked_1x2048x8192": dict(m=1, k=2048, n=8192, form="blocked"),
    "int4_odd_3x1000x1001": dict(m=3, k=1000, n=1001, zeros=True),
    "int4_odd_5x100x77": dict(m=5, k=100, n=77),
    "int4_odd_float_2x1000x1001": dict(m=2, k=1000, n=1001, dtype="float", zeros=True),
    "int8_odd_7x1000x333": dict(m=7, k=1000, n=333, bits=8, zeros=True),
    "int4_open_2x1024x2048": dict(m=2, k=1024, n=2048, symbolic=True),
}


def pack(codes, bits):
    """[n, blocks, block] as bytes, the first code in the low bits."""
    if bits == 8:
        return codes.astype(np.uint8)
    pairs = codes.reshape(codes.shape[0], codes.shape[1], -1, 2)
    return (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)


def pack_zeros(zeros, bits):
    if bits == 8:
        return zeros.astype(np.uint8)
    wide = np.concatenate([zeros, np.zeros((zeros.shape[0], zeros.shape[1] % 2), int)], 1)
    return (wide[:, ::2] | wide[:, 1::2] << 4).astype(np.uint8)


class Product:
    def __init__(self, m, k, n, bits=4, block=32, zeros=False, gated=False, dtype="half",
                 form="nbits", symbolic=False):
        self.m, self.k, self.n, self.bits, self.block, self.zeros = m, k, n, bits, block, zeros
        self.form, self.gated, self.symbolic = form, gated, symbolic
        self.type, self.numpy = TYPES[dtype]
        self.random = np.random.default_rng(k + n + bits)
        self.initializers, self.nodes = [], []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def scales(self, shape):
        numbers = 0.01 * (0.5 + self.random.random(shape))
        return numbers.astype(self.numpy)

    def weights(self, name):
        """Adds the product with them; returns them as they are multiplied, [k, n]."""
        if self.form == "nbits":
            return self.nbits(name)
        most = 1 << (self.bits - 1)
        codes = self.random.integers(-most, most, (self.k, self.n))
        blocks = self.k // self.block if self.form == "blocked" else 1
        scales = self.scales((blocks, self.n))
        if self.bits == 4:
            tensor = helper.make_tensor(f"{name}q", T.INT4, codes.shape,
                                        codes.reshape(-1).tolist())
        else:
            tensor = numpy_helper.from_array(codes.astype(np.int8), f"{name}q")
        self.initializers.append(tensor)
        attributes = {"axis": 0, "block_size": self.block} if self.form == "blocked" else {"axis": 1}
        scale = self.constant(f"{name}s", scales if self.form == "blocked" else scales[0])
        self.nodes += [
            helper.make_node("DequantizeLinear", [f"{name}q", scale], [f"{name}w"], **attributes),
            helper.make_node("MatMul", ["x", f"{name}w"], [name])]
        each = np.repeat(scales.astype(float), self.k // blocks, 0)
        return (codes * each).astype(self.numpy).astype(float)

    def nbits(self, name):
        blocks = -(-self.k // self.block)
        codes = self.random.integers(0, 1 << self.bits, (self.n, blocks, self.block))
        scales = self.scales((self.n, blocks))
        inputs = ["x", self.constant(f"{name}q", pack(codes, self.bits)),
                  self.constant(f"{name}s", scales)]
        zeros = np.full((self.n, blocks), 1 << (self.bits - 1))
        if self.zeros:
            zeros = self.random.integers(0, 1 << self.bits, (self.n, blocks))
            inputs.append(self.constant(f"{name}z", pack_zeros(zeros, self.bits)))
        self.nodes.append(helper.make_node("MatMulNBits", inputs, [name], domain="com.microsoft",
                                           K=self.k, N=self.n, bits=self.bits,
                                           block_size=self.block))
        numbers = (codes - zeros[..., None]) * scales.astype(float)[..., None]
        weights = numbers.reshape(self.n, -1)[:, :self.k].T
        return weights.astype(self.numpy).astype(float)

    def write(self, folder):
        x = self.random.standard_normal((self.m, self.k)).astype(self.numpy)
        p = x.astype(float) @ self.weights("p")
        y = p
        if self.gated:
            y = p / (1 + np.exp(-p)) * (x.astype(float) @ self.weights("u"))
            self.nodes += [helper.make_node("Sigmoid", ["p"], ["s"]),
                           helper.make_node("Mul", ["p", "s"], ["g"]),
                           helper.make_node("Mul", ["g", "u"], ["y"])]
        else:
            self.nodes.append(helper.make_node("Identity", ["p"], ["y"]))
        rows = "m" if self.symbolic else self.m
        graph = helper.make_graph(
            self.nodes, "product", [helper.make_tensor_value_info("x", self.type, [rows, self.k])],
            [helper.make_tensor_value_info("y", self.type, [rows, self.n])], self.initializers)
        model = helper.make_model(graph, ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 21),
                                                 helper.make_opsetid("com.microsoft", 1)])
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "inputs.npz", x=x)
        np.savez(folder / "outputs.npz", y=y.astype(self.numpy))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="names that contain this")
    arguments = parser.parse_args()
    for name, shape in PRODUCTS.items():
        if arguments.only in name:
            Product(**shape).write(arguments.folder / name)


if __name__ == "__main__":
    main()
