"""Models of one node in every float type, run by redfuser-run and compared with fp64."""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

TYPES = {"float16": (TensorProto.FLOAT16, np.float16),
         "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
         "float": (TensorProto.FLOAT, np.float32),
         "double": (TensorProto.DOUBLE, np.float64)}
NUMBERS = {np.dtype(array): number for number, array in TYPES.values()}


def element_type(array):
    return NUMBERS.get(array.dtype) or helper.np_dtype_to_tensor_dtype(array.dtype)


def model_of(nodes, feed, outputs, opset, domains=()):
    """Nodes with the arrays of `feed` as inputs; the outputs' types are left to the reader."""
    inputs = [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in feed.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, results), opset_imports=opsets, ir_version=10)


def run(program, model, feed, arguments=()):
    """The outputs by name, 16-bit ones too; RuntimeError with what the program said."""
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        np.savez(folder / "in.npz", **feed)
        given = ["--inputs", folder / "in.npz"] if feed else []
        done = subprocess.run([program, folder / "model.onnx", *given, "--outputs", folder / "out.npz", *arguments],
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip()[-400:])
        with np.load(folder / "out.npz") as file:
            return {name: of_any_type(file[name]) for name in file.files}


def of_any_type(array):
    """bfloat16 is raw bytes in a file of numpy's."""
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array


def error_of(got, wanted):
    """The largest difference, relative to the largest number wanted; infinite where only one is finite."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    with np.errstate(invalid="ignore"):
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        difference = np.where(same, 0, np.abs(got - wanted))
    difference = np.where(np.isfinite(difference), difference, np.inf)
    largest = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    return float(np.max(difference, initial=0) / (largest or 1))


def options(doc):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("program")
    parser.add_argument("operator", nargs="?")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def missing_device(given):
    """Why the device cannot be used; None if it can."""
    feed = {"x": np.ones(4, np.float32)}
    try:
        run(given.program, model_of([helper.make_node("Neg", ["x"], ["y"])], feed, ["y"], 13), feed, ["--device", given.device])
    except RuntimeError as error:
        return str(error)
    return None


def run_all(work, check, name_of, given, failed=0):
    """Checks every item, prints what fails and the summary; the exit code. What the device has no
    kernel for is counted apart."""
    if given.device != "cpu" and (reason := missing_device(given)):
        print(f"skipped: {reason}\n0 passed, 0 failed")
        return 0

    def one(item):
        try:
            return check(given.program, *item, ["--device", given.device])
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    passed = left_out = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for item, problem in zip(work, pool.map(one, work)):
            if problem is None:
                passed += 1
            elif given.device != "cpu" and problem.endswith("use --device cpu"):
                left_out += 1
            else:
                failed += 1
                print(f"{name_of(*item)}: {problem}", flush=True)
    if left_out:
        print(f"{left_out} without a kernel on {given.device}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not work else 0
