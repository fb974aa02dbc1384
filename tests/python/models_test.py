"""Every example model: fused and unfused results, what fuses, another shape, and step-wise checks.

    python models_test.py REDFUSER_RUN MODELS_FOLDER
"""

import pathlib
import sys
import tempfile

import numpy as np

from models import EXPECTED, Program, missing, other_inputs, quiet_session

BATCH, LENGTH, SEED = 3, 19, 7


def check_regions(name, program, model, inputs, outputs):
    problem, regions = program.compare_fused(model, inputs, outputs)
    if problem:
        return problem
    attention, row = EXPECTED[name]
    if (regions["attention"], regions["row"]) != (attention, row):
        return missing(name, regions) or f"more rows than norms: {dict(regions)}"
    return None


def check_other_shape(program, model, inputs, folder):
    feed = other_inputs(model, dict(np.load(inputs)), BATCH, LENGTH, SEED)
    session = quiet_session(str(model))
    names = [output.name for output in session.get_outputs()]
    np.savez(folder / "inputs.npz", **feed)
    np.savez(folder / "outputs.npz", **dict(zip(names, session.run(None, feed))))
    return program.compare(model, folder / "inputs.npz", folder / "outputs.npz")


def check(name, program, models, folder):
    model = models / name / "model.onnx"
    data = models / name / "inputs.npz", models / name / "outputs.npz"
    return {
        "fused": check_regions(name, program, model, *data),
        "unfused": program.compare(model, *data, "--no-fuse"),
        "verify": program.run(model, "--inputs", data[0], "--verify"),
        "other shape": check_other_shape(program, model, data[0], folder),
    }


def main():
    models = pathlib.Path(sys.argv[2])
    folders = sorted(path.parent.name for path in models.glob("*/model.onnx"))
    problems = 0
    if folders != sorted(EXPECTED):
        print(f"folders differ from the table: {set(folders) ^ set(EXPECTED)}")
        problems += 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        program = Program(sys.argv[1], folder)
        for name in sorted(EXPECTED):
            results = check(name, program, models, folder)
            bad = {what: problem for what, problem in results.items() if problem}
            print(f"{name}: {'ok' if not bad else ''}", flush=True)
            for what, problem in bad.items():
                print(f"  {what}: {problem}", flush=True)
            problems += len(bad)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
