"""The example models: what must fuse in each, and how the tests run redfuser-run on them."""

import collections
import json
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime

# Folder: attention regions, row regions (one per normalisation outside attention).
EXPECTED = {
    "bert.dynamo.sdpa": (2, 5),
    "bert.dynamo23.sdpa": (2, 5),
    "bert.ts.eager": (2, 5),
    "gemma2.dynamo.eager": (2, 9),
    "gpt2.dynamo.eager": (2, 5),
    "llama.dynamo.eager": (2, 5),
    "llama.dynamo.sdpa": (2, 5),
    "mpt.ts.eager": (2, 5),
    "resnet.dynamo.eager": (0, 0),
    "swin.dynamo.eager": (4, 11),
    "t5_encoder.ts.eager": (2, 5),
    "vit.dynamo.eager": (2, 5),
    "vit.ts.sdpa": (2, 5),
    "whisper_encoder.dynamo.sdpa": (2, 5),
}
SECONDS = 120


class Program:
    """redfuser-run on files of one folder."""

    def __init__(self, path, folder):
        self.path = str(path)
        self.report = pathlib.Path(folder) / "report.json"

    def run(self, model, *arguments):
        """None if the program succeeds, else the end of what it prints."""
        command = [self.path, str(model), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"runs longer than {SECONDS} s"
        if done.returncode == 0:
            return None
        return f"exit {done.returncode}: " + (done.stdout + done.stderr).strip()[-600:]

    def compare(self, model, inputs, outputs, *arguments):
        return self.run(model, "--inputs", inputs, "--compare", outputs, "--rtol", 1e-3, "--atol",
                        1e-4, "--threads", 1, *arguments)

    def compare_fused(self, model, inputs, outputs):
        """A problem or None, and the number of fused regions of each class."""
        problem = self.compare(model, inputs, outputs, "--explain", self.report)
        return problem, {} if problem else self.fused_classes()

    def fused_classes(self):
        """The number of fused regions of each class in the last report."""
        fused = json.loads(self.report.read_text())["fused"]
        return collections.Counter(region["class"] for region in fused)


def missing(name, regions):
    """What the regions lack, as text; None if nothing."""
    attention, row = EXPECTED[name]
    if regions["attention"] == attention and regions["row"] >= row:
        return None
    return f"fused {dict(regions)}, expected attention {attention}, row {row}"


def quiet_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def other_inputs(path, inputs, batch, length, seed):
    """Inputs like the given ones, with other sizes where the model's are symbolic."""
    random = np.random.default_rng(seed)
    result = {}
    for info in onnx.load(path, load_external_data=False).graph.input:
        dims = info.type.tensor_type.shape.dim
        known = inputs[info.name]
        # The first dimension is the batch; the only other symbolic one is the sequence.
        shape = [(length if i else batch) if dim.dim_param else dim.dim_value
                 for i, dim in enumerate(dims)]
        if known.dtype.kind == "f":
            result[info.name] = random.standard_normal(shape).astype(known.dtype)
        elif "mask" in info.name:
            visible = random.integers(1, shape[1] + 1, size=(shape[0], 1))
            result[info.name] = (np.arange(shape[1]) < visible).astype(known.dtype)
        else:
            result[info.name] = random.integers(0, known.max() + 1, shape).astype(known.dtype)
    return result
