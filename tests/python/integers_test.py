"""Operators of integers at the edges of their types, alone and in random chains, computed from inputs, from
initializers, and from the file that redfuser-opt writes: against ONNX's reference, which computes in numpy.

    python integers_test.py REDFUSER_RUN REDFUSER_OPT [--device cuda] [NAME]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import integer_cases

IR_VERSION = 10
REFUSALS = ("no kernel on a GPU", "no form on a GPU", "not supported on a GPU")


class Gemm(OpRun):
    """The reference multiplies by alpha, a float."""

    def _run(self, a, b, transB=None, **_):
        return (np.matmul(a, b.T),)


class ReduceSumSquare(OpRun):
    """The reference's sum of 32 bits has 64."""

    def _run(self, x, axes, keepdims=None, **_):
        return (np.sum(np.square(x), axis=tuple(axes), keepdims=bool(keepdims), dtype=x.dtype),)


class MaxPool(OpRun):
    """The reference pads integers with NaN. Only what the cases ask for."""

    def _run(self, x, kernel_shape=None, pads=None, **_):
        lowest = np.iinfo(x.dtype).min
        padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=lowest)
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel_shape, axis=(2, 3))
        return (windows.max(axis=(4, 5)),)


# What the reference computes otherwise than ONNX says. ONNX Runtime gives the same as these (it has no Gemm
# of integers), and as the reference does for all other cases, but for two: it saturates sums and products of
# integers that overflow, which it computes in floats, and it traps on a division by zero.
CORRECTED = [Gemm, MaxPool, ReduceSumSquare]


def model(cases, weights, names):
    feed = {} if weights else cases.inputs
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in feed.items()]
    known = {**cases.constants, **(cases.inputs if weights else {})}
    graph = helper.make_graph(cases.nodes, "integers", infos, [helper.make_empty_tensor_value_info(n) for n in names],
                              [numpy_helper.from_array(value, name) for name, value in known.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", integer_cases.OPSET)],
                             ir_version=IR_VERSION)


def expected_outputs(cases):
    values = ReferenceEvaluator(model(cases, False, cases.outputs), new_ops=CORRECTED).run(None, cases.inputs)
    return dict(zip(cases.outputs, values))


class Check:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)

    def outputs(self, cases, kind, names):
        """The outputs as the programs compute them, or what they say."""
        path, written, results = (self.folder / name for name in ("model.onnx", "written.onnx", "outputs.npz"))
        path.write_bytes(model(cases, kind != "inputs", names).SerializeToString())
        command = [self.options.run, path, "--outputs", results, "--device", self.options.device]
        if kind == "inputs":
            np.savez(self.folder / "inputs.npz", **cases.inputs)
            command += ["--inputs", self.folder / "inputs.npz"]
        if kind == "written":
            done = subprocess.run([self.options.opt, path, written], capture_output=True, text=True)
            if done.returncode != 0:
                return f"redfuser-opt: exit {done.returncode}: {done.stderr[-400:]}"
            command[1] = written
        done = subprocess.run(command, capture_output=True, text=True)
        return dict(np.load(results)) if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-400:]}"

    def problems(self, cases, kind):
        """Label and problem of every case that is wrong. Where the whole model fails, case by case."""
        expected = expected_outputs(cases)
        got = self.outputs(cases, kind, cases.outputs)
        for label in cases.outputs:
            own = got if isinstance(got, dict) else self.outputs(cases, kind, [label])
            if isinstance(own, str):
                if self.options.device == "cpu" or not any(text in own for text in REFUSALS):
                    yield label, own
            elif own[label].dtype != expected[label].dtype or not np.array_equal(
                    own[label], expected[label], equal_nan=own[label].dtype.kind == "f"):
                yield label, difference(own[label], expected[label])


def difference(got, expected):
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}"
    place = tuple(np.argwhere(got != expected)[0])
    return f"{got[place]} at {[int(i) for i in place]}, expected {expected[place]}"


def all_cases():
    for dtype in integer_cases.INTEGERS:
        yield f"operators of {dtype}", integer_cases.table(dtype)
        yield f"chains of {dtype}", integer_cases.chains(dtype)
    for dtype in integer_cases.FLOATS:
        yield f"casts of {dtype}", integer_cases.from_floats(dtype)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("opt")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of overflow, which is what the cases are for
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        check = Check(options, folder)
        for name, cases in all_cases():
            if options.name not in name:
                continue
            for kind in ("inputs", "initializers", "written"):
                wrong = list(check.problems(cases, kind))
                for label, problem in wrong:
                    print(f"{name}, {kind}: {label}: {problem}", flush=True)
                failed += len(wrong)
                passed += len(cases.outputs) - len(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
