"""Rewritten models give the same results and fuse like the originals.

    python rewrites_test.py REDFUSER_RUN MODELS_FOLDER [--seed N] [--files N] [--model NAME]
                            [--rewrite NAME] [--keep FOLDER]

Every file is checked by onnx.checker and, to prove that the rewrite kept the meaning, by ONNX
Runtime. --rewrite applies one rewrite at a time; --keep writes the failing files to a folder.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile

import numpy as np
import onnx

from models import EXPECTED, Program, missing, other_inputs, quiet_session
from rewrites import REWRITES, compose, single
from rewrites_editor import value_types

ATTENTION_MODELS = [name for name, (attention, _) in EXPECTED.items() if attention]


def changed(rewritten, feed, outputs):
    """How ONNX Runtime's result differs from the original's, or None."""
    session = quiet_session(rewritten.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    for name, value in zip(names, session.run(names, feed)):
        if not np.allclose(value, outputs[name], rtol=1e-3, atol=1e-4):
            return f"the rewrite changes {name} by {np.abs(value - outputs[name]).max()}"
    return None


class ModelTest:
    """One model, what it computes for two shapes of its inputs, and the files made from it."""

    def __init__(self, arguments, name, folder):
        self.name = name
        self.arguments = arguments
        source = pathlib.Path(arguments.models) / name
        self.inputs, self.outputs = source / "inputs.npz", source / "outputs.npz"
        self.feed, self.expected = dict(np.load(self.inputs)), dict(np.load(self.outputs))
        self.model = onnx.load(source / "model.onnx")
        self.types = value_types(source / "model.onnx", self.feed)
        self.other = folder / "other_inputs.npz", folder / "other_outputs.npz"
        feed = other_inputs(source / "model.onnx", self.feed, 3, 19, arguments.seed)
        session = quiet_session(str(source / "model.onnx"))
        np.savez(self.other[0], **feed)
        np.savez(self.other[1], **dict(zip(self.expected, session.run(list(self.expected), feed))))

    def check(self, rewritten, label, folder, program):
        problem = changed(rewritten, self.feed, self.expected)
        if not problem:
            path = folder / "model.onnx"
            path.write_bytes(rewritten.SerializeToString())
            problem, regions = program.compare_fused(path, self.inputs, self.outputs)
            problem = problem or missing(self.name, regions)
            if not problem:
                problem = program.compare(path, *self.other)
                problem = problem and "other shape: " + problem
        if problem and self.arguments.keep:
            keep = pathlib.Path(self.arguments.keep)
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{label}.onnx").write_bytes(rewritten.SerializeToString())
        return problem

    def composed(self, number):
        random = np.random.default_rng([self.arguments.seed, number])
        rewritten, done = compose(self.model, self.types, random)
        return f"{self.name}.{number}", done, rewritten

    def alone(self, name, number):
        random = np.random.default_rng([self.arguments.seed, number])
        made = single(self.model, self.types, name, 1.0 if number == 0 else 0.15, random)
        return (f"{self.name}.{name}.{number}", made[1], made[0]) if made else None


def test_model(arguments, name, count):
    """(label, rewrites, problem) of every file made from one model."""
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        program = Program(arguments.run, folder)
        test = ModelTest(arguments, name, folder)
        for number in range(count):
            if arguments.rewrite:
                names = list(REWRITES) if arguments.rewrite == "each" else [arguments.rewrite]
                made = [test.alone(rewrite, number) for rewrite in names]
            else:
                made = [test.composed(number)]
            results += [(label, done, test.check(rewritten, label, folder, program))
                        for label, done, rewritten in filter(None, made)]
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("models")
    parser.add_argument("--seed", type=int, default=20240)
    parser.add_argument("--files", type=int, default=208)
    parser.add_argument("--model", choices=ATTENTION_MODELS)
    parser.add_argument("--rewrite", choices=["each", *REWRITES])
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    names = [arguments.model] if arguments.model else ATTENTION_MODELS
    count = -(-arguments.files // len(names))
    print(f"seed {arguments.seed}", flush=True)
    files = problems = 0
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        work = [pool.submit(test_model, arguments, name, count) for name in names]
        for name, done in zip(names, work):
            results = done.result()
            failed = [result for result in results if result[2]]
            print(f"{name}: {len(results)} files, {len(failed)} fail", flush=True)
            for label, rewrites, problem in failed:
                print(f"  {label}: {rewrites}\n    {problem}", flush=True)
            files += len(results)
            problems += len(failed)
    print(f"{files} rewritten files, {problems} fail")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
