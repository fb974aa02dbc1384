"""redfuser-run --verify passes on right programs in every type: the example models converted to 16-bit floats by
redfuser-opt, and quantized by ONNX Runtime, on their own inputs and on others.

    python verify_test.py REDFUSER_OPT REDFUSER_RUN MODELS_DIR
"""

import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static

from models import EXPECTED, Program, other_inputs

SEEDS = (1, 2)


class Once(CalibrationDataReader):
    """One set of inputs to calibrate with."""

    def __init__(self, feed):
        self.feeds = iter([feed])

    def get_next(self):
        return next(self.feeds, None)


def converter(opt, to):
    def convert(source, target, _):
        subprocess.run([opt, source, target, "--to", to], check=True, capture_output=True)
    return convert


def static(form):
    def convert(source, target, feed):
        quantize_static(str(source), str(target), Once(feed), quant_format=form)
    return convert


def conversions(opt):
    return {
        "fp16": converter(opt, "fp16"),
        "bf16": converter(opt, "bf16"),
        "dynamic": lambda source, target, _: quantize_dynamic(str(source), str(target)),
        "QDQ": static(QuantFormat.QDQ),
        "QOperator": static(QuantFormat.QOperator),
    }


# The first is refused by the quantizer itself; of the second it makes a QAttention without a number of heads.
# The others calibrate with an infinity and then gather out of range, which ONNX Runtime refuses too.
UNWRITTEN = {("mpt.ts.eager", "QOperator"), ("bert.dynamo23.sdpa", "dynamic"),
             ("t5_encoder.ts.eager", "QDQ"), ("t5_encoder.ts.eager", "QOperator")}


def sets_of_inputs(model, folder):
    """Files: the model's own inputs, and others of the same sizes."""
    own = model / "inputs.npz"
    yield own
    known = dict(np.load(own))
    sizes = next(iter(known.values())).shape
    for seed in SEEDS:
        target = folder / f"inputs{seed}.npz"
        length = sizes[1] if len(sizes) > 1 else 1
        np.savez(target, **other_inputs(model / "model.onnx", known, sizes[0], length, seed))
        yield target


def check(run, model, target, folder):
    for inputs in sets_of_inputs(model, folder):
        if problem := run.run(target, "--device", "cpu", "--inputs", inputs, "--verify"):
            return f"{inputs.name}: {problem}"
    return None


def main():
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run = Program(sys.argv[2], folder)
        for name in sorted(EXPECTED):
            model = pathlib.Path(sys.argv[3]) / name
            for kind, convert in conversions(sys.argv[1]).items():
                if (name, kind) in UNWRITTEN:
                    continue
                target = folder / "model.onnx"
                convert(model / "model.onnx", target, dict(np.load(model / "inputs.npz")))
                problem = check(run, model, target, folder)
                if problem:
                    print(f"{name} {kind}: {problem}", flush=True)
                passed, failed = passed + (problem is None), failed + (problem is not None)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
