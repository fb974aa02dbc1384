"""Recurrent layers drawn at random (operators, attributes, sizes, types, threads): redfuser-run against ONNX
Runtime, and the errors of wrong quantisation parameters.

    python recurrent_test.py REDFUSER_RUN [COUNT] [SEED]
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import case_runner

CELLS = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}  # gates, activations
# Gates that are not between 0 and 1 let states grow until rounding errors decide.
GATES = ["Sigmoid", "HardSigmoid"]
ACTIVATIONS = GATES + ["Tanh", "Softsign", "ScaledTanh", "LeakyRelu", "Relu", "Elu"]
WIDTHS = {np.float32: 2e-4, np.float64: 2e-4, np.float16: 2e-2}


class Draw:
    """A layer. ONNX Runtime runs it in float32, beginning with the steps (layout 0)."""

    def __init__(self, seed):
        self.random = random = np.random.default_rng(seed)
        self.seed = seed
        self.choose()
        self.steps, self.batch = int(random.integers(1, 12)), int(random.choice([1, 1, 2, 3, 6, 9]))
        self.inputs, self.hidden = int(random.integers(1, 70)), int(random.integers(1, 150))
        direction = str(random.choice(["forward", "reverse", "bidirectional"]))
        self.directions = 2 if direction == "bidirectional" else 1
        self.constant = random.random() < 0.5
        self.threads = int(random.integers(1, 5))
        self.attributes = {"hidden_size": self.hidden, "direction": direction}
        if self.op == "GRU":
            self.attributes["linear_before_reset"] = int(random.integers(0, 2))
        if self.op.endswith("LSTM") and random.random() < 0.3:
            self.attributes["input_forget"] = 1
        if random.random() < 0.3:
            self.attributes["clip"] = float(random.choice([0.3, 0.9]))
        if random.random() < 0.5:
            count = self.activations * self.directions
            self.attributes["activations"] = [
                str(random.choice(GATES if i % self.activations == 0 and self.op != "RNN" else ACTIVATIONS))
                for i in range(count)]
            self.attributes["activation_alpha"] = [0.3] * count
            self.attributes["activation_beta"] = [0.6] * count
        self.tensors = self.draw_tensors()

    def choose(self):
        self.op = str(self.random.choice(list(CELLS)))
        self.gates, self.activations = CELLS[self.op]
        self.dtype = self.random.choice([np.float32] * 4 + [np.float64, np.float16])
        self.layout = int(self.random.random() < 0.3)

    def normal(self, *shape, scale=1.0):
        values = (self.random.standard_normal(shape) * scale).astype(self.dtype)
        return values.astype(np.float32)

    def draw_tensors(self):
        """By the operator's names, in the order of its inputs; None is absent."""
        d, rows, some = self.directions, self.gates * self.hidden, lambda: self.random.random() < 0.5
        tensors = {"X": self.normal(self.steps, self.batch, self.inputs),
                   "W": self.normal(d, rows, self.inputs, scale=self.inputs ** -0.5),
                   "R": self.normal(d, rows, self.hidden, scale=self.hidden ** -0.5),
                   "B": self.normal(d, 2 * rows) if some() else None,
                   "sequence_lens": None,
                   "initial_h": self.normal(d, self.batch, self.hidden) if some() else None}
        if some():
            tensors["sequence_lens"] = self.random.integers(1, self.steps + 1, self.batch).astype(np.int32)
        if self.op.endswith("LSTM"):
            tensors["initial_c"] = self.normal(d, self.batch, self.hidden) if some() else None
            tensors["P"] = self.normal(d, 3 * self.hidden, scale=0.3) if some() else None
        return tensors

    def output_names(self):
        return ["Y", "Y_h", "Y_c"][:3 if self.op.endswith("LSTM") else 2]

    def model(self, tensors, layout=0, constants=()):
        names = ["" if value is None else name for name, value in tensors.items()]
        attributes = {**self.attributes, **({"layout": 1} if layout else {})}
        domain = "com.microsoft" if self.op == "DynamicQuantizeLSTM" else ""
        node = helper.make_node(self.op, names, self.output_names(), name="the layer", domain=domain, **attributes)
        given = {name: value for name, value in tensors.items() if value is not None}
        feed = {name: value for name, value in given.items() if name not in constants}
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for name, value in feed.items()]
        weights = [numpy_helper.from_array(given[name], name) for name in constants if name in given]
        results = [onnx.ValueInfoProto(name=name) for name in self.output_names()]
        graph = helper.make_graph([node], "layer", infos, results, weights)
        imports = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9), feed

    def own(self, tensors):
        """The tensors of the drawn type, and of the drawn layout."""
        swapped = ["X", "initial_h", "initial_c"] if self.layout else []
        return {name: value if value is None else
                (value.swapaxes(0, 1) if name in swapped else value).astype(
                    self.dtype if value.dtype == np.float32 else value.dtype)
                for name, value in tensors.items()}

    def expected(self):
        model, feed = self.model(self.tensors)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = dict(zip(self.output_names(), session.run(None, feed)))
        if self.layout:
            results = {name: value.transpose(2, 0, 1, 3) if name == "Y" else value.swapaxes(0, 1)
                       for name, value in results.items()}
        return {name: value.astype(self.dtype) for name, value in results.items()}

    def tolerance(self):
        return WIDTHS[self.dtype]

    def __str__(self):
        absent = [name for name, value in self.tensors.items() if value is None]
        return (f"seed {self.seed}: {self.op} of {self.dtype.__name__}, {self.steps} steps, batch {self.batch}, "
                f"{self.inputs} to {self.hidden}, layout {self.layout}, {self.threads} threads, "
                f"constants {self.constant}, {self.attributes}, without {absent}")


class QuantizedDraw(Draw):
    """A com.microsoft.DynamicQuantizeLSTM, whose weights have their gates as columns."""

    def choose(self):
        self.op, self.gates, self.activations = "DynamicQuantizeLSTM", 4, 3
        self.dtype, self.layout = np.float32, 0
        self.weights = self.random.choice([np.int8, np.uint8])

    def draw_tensors(self):
        tensors = super().draw_tensors()
        parameters = {}
        for name in "WR":
            per_column = self.random.random() < 0.5
            tensors[name], *values = self.quantized(tensors[name].swapaxes(1, 2), per_column)
            parameters[f"{name}_scale"], parameters[f"{name}_zero_point"] = values
        return {**tensors, **parameters}

    def quantized(self, weights, per_column):
        """By ONNX Runtime's limits: one zero point for all columns, which is 0 for columns of int8; int8 of seven
        bits, since it saturates sums of two products to 16 bits on processors without dot products of bytes."""
        dtype = self.weights
        low, high = (-64, 63) if dtype == np.int8 else (0, 255)
        zero = 0 if dtype == np.int8 and per_column else int(self.random.integers(low // 2, high // 2 + 1))
        scale = np.abs(weights).max(1 if per_column else (1, 2)) / min(high - zero, zero - low)
        spread = scale[:, None, :] if per_column else scale[:, None, None]
        integers = np.clip(np.round(weights / spread) + zero, low, high).astype(dtype)
        return integers, scale.astype(np.float32), np.full(scale.shape, zero, dtype)

    def tolerance(self):
        return 1e-3  # rounding may take the other side of a step


def check(program, draw, folder):
    constants = [name for name in draw.tensors if name[0] in "WRB"] if draw.constant else []
    model, feed = draw.model(draw.own(draw.tensors), draw.layout, constants)
    np.savez(folder / "outputs.npz", **draw.expected())
    tolerance = str(draw.tolerance())
    code, said = case_runner.run_model(program, model, feed, folder, "--compare", folder / "outputs.npz", "--rtol",
                                       tolerance, "--atol", tolerance, threads=draw.threads)
    return None if code == 0 else f"{draw}\n  {said}"


def check_refused(program, change, part, folder):
    """An error names the node and the tensor."""
    draw = QuantizedDraw(0)
    change(draw.tensors)
    model, feed = draw.model(draw.tensors)
    code, said = case_runner.run_model(program, model, feed, folder)
    named = code == 2 and all(text in said for text in ("DynamicQuantizeLSTM", "the layer", part))
    return None if named else f"{part}: exit {code}, {said}"


def with_value(name, value):
    def change(tensors):
        tensors[name].flat[-1] = value
    return change


REFUSED = [(with_value(name, value), f'"{name}"') for name in ("W_scale", "R_scale")
           for value in (np.nan, 0, -1, np.inf)] + [
    (lambda tensors: tensors.update(R_zero_point=tensors["R_zero_point"].astype(np.int32) + 300), '"R_zero_point"'),
    (lambda tensors: tensors.update(W_zero_point=tensors["W_zero_point"][..., None, None]), '"W_zero_point"'),
    (lambda tensors: tensors.update(W_scale=np.ones((5, 3), np.float32)), '"W_scale"'),
    (lambda tensors: tensors.update(R=tensors["R"].astype(np.int32)), '"R"')]


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    onnxruntime.set_default_logger_severity(4)
    drawn = [(program, (QuantizedDraw if i % 3 == 0 else Draw)(first + i)) for i in range(count)]
    failed = case_runner.run_cases(drawn, check)
    return failed | case_runner.run_cases([(program, *case) for case in REFUSED], check_refused)


if __name__ == "__main__":
    sys.exit(main())
