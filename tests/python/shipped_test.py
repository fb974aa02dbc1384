"""ONNX files that packages ship give what ONNX Runtime gives, for several sizes and with states carried from run to run.

    python shipped_test.py REDFUSER_RUN

The packages are fetched once; without a registry the test is skipped (exit code 77).
"""

import subprocess
import sys

import numpy as np
import onnxruntime

from case_runner import run_cases
from shipped_models import OutOfReach, draw, files

SKIPPED = 77


def compared(program, path, feed, wanted, error, folder):
    """None, or what redfuser-run says of its results."""
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "outputs.npz", **wanted)
    done = subprocess.run([program, path, "--inputs", folder / "inputs.npz", "--compare", folder / "outputs.npz",
                           "--threads", "1", "--rtol", "1e-3", "--atol", str(error)],
                          capture_output=True, text=True, timeout=120)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()[-600:]


def check(path, shipped, program, folder):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    last, wanted = None, {}
    for seed, sizes in enumerate(shipped.sizes):
        feed = draw(session, shipped, sizes, seed)
        if sizes == last:
            feed.update({state: wanted[output] for state, output in shipped.states.items()})
        last, wanted = sizes, dict(zip(names, session.run(None, feed)))
        problem = compared(program, path, feed, wanted, shipped.error, folder)
        if problem:
            return f"{path.name}, run {seed}: {problem}"
    return None


def main():
    try:
        cases = [(path, shipped, sys.argv[1]) for path, shipped in files()]
    except OutOfReach as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    return run_cases(cases, check)


if __name__ == "__main__":
    sys.exit(main())
