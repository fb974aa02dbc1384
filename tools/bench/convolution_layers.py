"""Writes convolutions of one layer, each with a bias and a ReLU, as folders for `redfuser-bench --suite e2e
--models FOLDER`, with PyTorch's results in fp64 beside them, and times PyTorch in eager mode: exactly and with TF32,
with channels first and last in memory; medians on a GPU with a cold cache.

    python convolution_layers.py FOLDER [--json FILE]

Needs torch, and a GPU with --json.
"""

import argparse
import json
import pathlib
import statistics

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f32": (torch.float32, TensorProto.FLOAT), "f16": (torch.float16, TensorProto.FLOAT16)}
# images, channels, sizes, filters, kernel, and what differs from strides and dilations of 1, pads that keep the
# sizes, and one group
LAYERS = {
    "rn_3x3_64_b8": (8, 64, (56, 56), 64, 3, {}),
    "rn_1x1_256_b8": (8, 256, (56, 56), 64, 1, {}),
    "rn_3x3_512_b1": (1, 512, (7, 7), 512, 3, {}),
    "rn_7x7s2_b8": (8, 3, (224, 224), 64, 7, {"stride": 2}),
    "rn_3x3s2_b32": (32, 128, (56, 56), 128, 3, {"stride": 2}),
    "resnext_g32_b8": (8, 128, (56, 56), 128, 3, {"groups": 32}),
    "resnext_g32_1024_b8": (8, 1024, (14, 14), 1024, 3, {"groups": 32}),
    "group2_b4": (4, 192, (27, 27), 384, 5, {"groups": 2}),
    "dw3_b8": (8, 96, (112, 112), 96, 3, {"groups": 96}),
    "dw3s2_b8": (8, 96, (112, 112), 96, 3, {"groups": 96, "stride": 2}),
    "dw7_b8": (8, 192, (56, 56), 192, 7, {"groups": 192}),
    "r3d_64_b1": (1, 64, (16, 56, 56), 64, 3, {}),
    "r3d_stem_b1": (1, 3, (16, 112, 112), 64, (3, 7, 7), {"stride": (1, 2, 2)}),
    "w2v_k10s5": (1, 1, (160000,), 512, 10, {"stride": 5, "padding": 0}),
    "w2v_k3s2": (1, 512, (31999,), 512, 3, {"stride": 2, "padding": 0}),
    "w2v_pos_k128g16": (1, 768, (500,), 768, 128, {"groups": 16, "padding": 64}),
    "whisper_k3": (1, 80, (3000,), 384, 3, {}),
    "dil2_b2": (2, 256, (64, 64), 256, 3, {"dilation": 2}),
    "odd30_b4": (4, 30, (61, 77), 45, 3, {}),
    "ct4s2_b4": (4, 256, (32, 32), 128, 4, {"stride": 2, "padding": 1, "transposed": True}),
    "ct2s2_b2": (2, 128, (64, 64), 64, 2, {"stride": 2, "padding": 0, "transposed": True}),
    "ct1d_k16s8": (1, 512, (200,), 256, 16, {"stride": 8, "padding": 4, "transposed": True}),
    "unet_320_b2": (2, 320, (64, 64), 320, 3, {}),
}


def per_dimension(value, rank):
    return list(value) if isinstance(value, tuple) else [value] * rank


class Layer:
    def __init__(self, spec, dtype, generator):
        images, channels, sizes, filters, kernel, other = spec
        self.rank = rank = len(sizes)
        self.kernel = per_dimension(kernel, rank)
        self.stride = per_dimension(other.get("stride", 1), rank)
        self.dilation = per_dimension(other.get("dilation", 1), rank)
        same = tuple((k - 1) * d // 2 for k, d in zip(self.kernel, self.dilation))
        self.padding = per_dimension(other.get("padding", same), rank)
        self.groups = other.get("groups", 1)
        self.transposed = other.get("transposed", False)
        weights = (channels, filters // self.groups) if self.transposed else (filters, channels // self.groups)
        scale = np.sqrt(channels // self.groups * np.prod(self.kernel))
        self.x = torch.randn(images, channels, *sizes, generator=generator).to(dtype)
        self.w = (torch.randn(*weights, *self.kernel, generator=generator) / scale).to(dtype)
        self.b = torch.randn(filters, generator=generator).to(dtype)

    def run(self, x, w, b):
        function = getattr(F, f"conv{'_transpose' if self.transposed else ''}{self.rank}d")
        return torch.relu(function(x, w, b, stride=self.stride, padding=self.padding, dilation=self.dilation,
                                   groups=self.groups))

    def model(self, result, onnx_type):
        node = helper.make_node("ConvTranspose" if self.transposed else "Conv", ["x", "w", "b"], ["c"],
                                kernel_shape=self.kernel, strides=self.stride, pads=self.padding * 2,
                                dilations=self.dilation, group=self.groups)
        graph = helper.make_graph(
            [node, helper.make_node("Relu", ["c"], ["y"])], "layer",
            [helper.make_tensor_value_info("x", onnx_type, list(self.x.shape))],
            [helper.make_tensor_value_info("y", onnx_type, list(result.shape))],
            [numpy_helper.from_array(self.w.numpy(), "w"), numpy_helper.from_array(self.b.numpy(), "b")])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def write(self, folder, onnx_type):
        folder.mkdir(parents=True, exist_ok=True)
        y = self.run(*(tensor.double() for tensor in (self.x, self.w, self.b))).to(self.x.dtype)
        onnx.save(self.model(y, onnx_type), folder / "model.onnx")
        np.savez(folder / "inputs.npz", x=self.x.numpy())
        np.savez(folder / "outputs.npz", y=y.numpy())

    def microseconds(self, flush):
        """Medians, by how the products are computed and by the order in memory ("_cl": channels last)."""
        times = {}
        for name, tf32 in [("exact", False), ("tf32", True)][: 2 if self.x.dtype == torch.float32 else 1]:
            torch.backends.cudnn.allow_tf32 = tf32
            for order in ["", "_cl"][: 2 if self.rank == 2 else 1]:
                form = {"memory_format": torch.channels_last} if order else {}
                x, w, b = self.x.cuda().to(**form), self.w.cuda().to(**form), self.b.cuda()
                times[name + order] = median_time(lambda: self.run(x, w, b), flush)
        return times


def median_time(run, flush):
    """Of a CUDA graph of the run, so that the host's launches do not count."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(30)]
    for begin, end in events:
        flush.zero_()
        begin.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1e3 for begin, end in events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json", help="times PyTorch and writes its times here")
    options = parser.parse_args()
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda") if options.json else None
    generator, rows = torch.Generator().manual_seed(0), []
    for suffix, (dtype, onnx_type) in TYPES.items():
        for name, spec in LAYERS.items():
            layer, name = Layer(spec, dtype, generator), f"{name}_{suffix}"
            layer.write(options.folder / name, onnx_type)
            if options.json:
                with torch.no_grad():
                    rows.append({"suite": "convolutions", "name": name, "us": layer.microseconds(flush)})
    if options.json:
        results = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
