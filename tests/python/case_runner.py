"""Cases that each run redfuser-run once or more, in parallel, in a folder of their own."""

import concurrent.futures
import os
import pathlib
import subprocess
import tempfile

import numpy as np


def run_model(program, model, feed, folder, *arguments, threads=1):
    """The exit code, and the end of what was printed."""
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    np.savez(folder / "inputs.npz", **feed)
    command = [program, folder / "model.onnx", "--inputs", folder / "inputs.npz", "--threads", str(threads),
               *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, (done.stdout + done.stderr)[-400:]


def run_cases(cases, check):
    """Calls `check(*case, folder)`, which returns what is wrong or None; prints the problems. The result is the
    test's exit code: 1 also where there are no cases."""
    with tempfile.TemporaryDirectory() as root:
        def one(numbered):
            number, case = numbered
            folder = pathlib.Path(root) / str(number)
            folder.mkdir()
            return check(*case, folder)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = [problem for problem in pool.map(one, enumerate(cases)) if problem]
    print("\n".join(problems))
    print(f"{len(cases) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not cases else 0
