"""ONNX's backend tests through redfuser.backend, by ONNX's own runner.

    python backend_test.py MODELS

The cases that fail are those of tests/conformance_exceptions.txt and those that no runner of this kind can
judge, listed below. A case that is named there and passes fails the test.
"""

import pathlib
import sys
import unittest
import warnings

import numpy as np
import onnx
import onnx.backend.test
from onnx import helper
from onnx.backend.test import loader

import redfuser
import redfuser.backend

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "python"))
from conformance_test import EXCEPTIONS, is_random, read_exceptions  # noqa: E402

sys.argv.pop(1)
# The runner takes the length of the elements of a sequence; these have no dimensions.
NOT_COMPARED = {"test_loop16_seq_none"}


def random_cases():
    """Cases whose outputs are drawn: the runner compares them with another draw."""
    return {case.name for case in loader.load_model_tests(kind="node")
            if is_random(onnx.load(pathlib.Path(case.model_dir) / "model.onnx"))}


def names(cases):
    return {case.id().rsplit(".", 1)[1].removesuffix("_cpu") for case, _ in cases}


class Conformance(unittest.TestCase):
    def test_cases_of_onnx(self):
        runner = onnx.backend.test.BackendTest(redfuser.backend, __name__)
        runner.exclude("_cuda$")
        suite, result = unittest.TestSuite(), unittest.TestResult()
        for cases in runner.test_cases.values():
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(cases))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            suite.run(result)
        failed, named = names(result.failures + result.errors), set(read_exceptions(EXCEPTIONS))
        # The runner skips what is_compatible refuses, and what a device is missing for.
        refused = {name for name in names(result.skipped) if not name.endswith("_cuda")}
        unjudged = failed & (random_cases() | NOT_COMPARED)
        self.assertEqual((failed | refused) - unjudged, named)
        passed = result.testsRun - len(failed) - len(result.skipped)
        print(f"ONNX's runner: {passed} cases pass; {len(named)} are exceptions, {len(unjudged)} are not judged")


class Interface(unittest.TestCase):
    def test_runs_a_node(self):
        node = helper.make_node("Add", ["a", "b"], ["c"])
        one = np.ones(3, np.float32)
        np.testing.assert_array_equal(redfuser.backend.run_node(node, [one, one])[0], 2 * one)

    def test_runs_a_model(self):
        model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]> '
                                        "g (float[n] x) => (float[n] y, float[n] z) { y = Exp(x)  z = Neg(x) }")
        outputs = redfuser.backend.prepare(model).run(np.zeros(2, np.float32))
        np.testing.assert_array_equal(outputs.y, [1, 1])
        np.testing.assert_array_equal(outputs[1], [0, 0])
        with self.assertRaisesRegex(redfuser.UserError, "2 inputs are given; the model takes 1"):
            redfuser.backend.run_model(model, [np.zeros(2, np.float32)] * 2)

    def test_knows_its_devices(self):
        self.assertTrue(redfuser.backend.supports_device("CPU"))
        self.assertFalse(redfuser.backend.supports_device("CUDA:1"))
        self.assertEqual(redfuser.backend.supports_device("CUDA"), redfuser.get_device() == "GPU")

    def test_optimizes(self):
        model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]> g (float[2, 4] x) => (float[2, 4] y) '
                                        "{ y = Softmax<axis = -1>(x) }")
        optimized = redfuser.optimize(model)
        onnx.checker.check_model(optimized)
        self.assertEqual([function.domain for function in optimized.functions], ["ai.redfuser"])
        x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
        for source in (model, optimized, redfuser.optimize(model, emit="standard")):
            got = redfuser.InferenceSession(source, providers=["cpu"]).run(None, {"x": x})[0]
            np.testing.assert_allclose(got, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
        with self.assertRaisesRegex(redfuser.UserError, "function, inline or standard"):
            redfuser.optimize(model, emit="nothing")


if __name__ == "__main__":
    unittest.main()
