"""Every model of models/ as a whole in the provider, at two levels of ONNX Runtime's own optimisations.

    python models_test.py LIBRARY MODELS
"""

import pathlib
import sys

import numpy as np
import onnxruntime
from provider import quiet_options, session_of

LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"]


def problem_of(folder, level):
    options = quiet_options()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = session_of(str(folder / "model.onnx"), whole=True, options=options)
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, dict(np.load(folder / "inputs.npz")))))
    for name, expected in np.load(folder / "outputs.npz").items():
        if not np.allclose(outputs[name], expected, rtol=1e-3, atol=1e-4):
            return f"{name} differs by {np.abs(outputs[name] - expected).max()}"
    return None


def main():
    folders = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/model.onnx"))
    problems = len(folders) == 0
    for folder in folders:
        for level in LEVELS:
            try:
                problem = problem_of(folder, level)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem:
                problems += 1
                print(f"{folder.name} {level}: {problem}", flush=True)
    print(f"ONNX Runtime {onnxruntime.__version__}: {len(folders)} models, {int(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
