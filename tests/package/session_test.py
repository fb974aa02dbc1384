"""Models run by the installed package, as ONNX Runtime's interface and as its own.

    python session_test.py MODELS
"""

import pathlib
import sys
import unittest

import numpy as np

import redfuser

MODELS = pathlib.Path(sys.argv.pop(1))
SOFTMAX = """<ir_version: 9, opset_import: ["" : 20]> g (float[batch, n] x, float[batch, n] mask)
             => (float[batch, n] y, float[batch] top) {
               s = Add(x, mask)  y = Softmax<axis = -1>(s)  axes = Constant<value = int64[1] {1}>()
               top = ReduceMax<keepdims = 0>(y, axes) }"""


def softmax_program():
    return redfuser.compile(redfuser.Model.parse(SOFTMAX))


class Inference(unittest.TestCase):
    def test_runs_a_model_in_three_lines(self):
        folder = MODELS / "bert.ts.eager"
        session = redfuser.InferenceSession(folder / "model.onnx")
        outputs = session.run(None, dict(np.load(folder / "inputs.npz")))
        expected = np.load(folder / "outputs.npz")["out"]
        self.assertLess(np.abs(outputs[0] - expected).max(), 1e-3)

    def test_reads_bytes_and_protos(self):
        import onnx
        path = MODELS / "vit.ts.sdpa" / "model.onnx"
        for source in (path.read_bytes(), onnx.load(path), str(path)):
            self.assertTrue(redfuser.InferenceSession(source).get_inputs())

    def test_describes_inputs_and_outputs(self):
        session = redfuser.InferenceSession(MODELS / "bert.ts.eager" / "model.onnx",
                                            providers=["CPUExecutionProvider"])
        first = session.get_inputs()[0]
        self.assertEqual(first.type, "tensor(int64)")
        self.assertEqual(first.shape, ["batch", "seq"])
        self.assertEqual([output.name for output in session.get_outputs()], ["out"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_returns_named_outputs_in_order(self):
        session = redfuser.InferenceSession(softmax_program().model, providers=["cpu"])
        feed = {"x": np.zeros((2, 4), np.float32), "mask": np.zeros((2, 4), np.float32)}
        top, y = session.run(["top", "y"], feed)
        np.testing.assert_allclose(y, 0.25)
        np.testing.assert_allclose(top, [0.25, 0.25])
        top[0] = 7  # outputs are the caller's
        np.testing.assert_allclose(session.run(["top"], feed)[0], [0.25, 0.25])

    def test_an_initializer_that_is_an_input_may_be_given(self):
        model = redfuser.Model.parse('<ir_version: 10, opset_import: ["" : 20]>'
                                     "g (float[n] x, float[1] s = {2}) => (float[n] y) { y = Mul(x, s) }")
        session = redfuser.InferenceSession(model)
        self.assertEqual([arg.name for arg in session.get_inputs()], ["x"])
        self.assertEqual([arg.name for arg in session.get_overridable_initializers()], ["s"])
        x = np.array([1, 3], np.float32)
        for feed, factor in (({}, 2), ({"s": np.array([5], np.float32)}, 5), ({}, 2)):
            np.testing.assert_array_equal(session.run(None, {"x": x, **feed})[0], factor * x)

    def test_passes_session_options_on(self):
        options = redfuser.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = redfuser.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = redfuser.InferenceSession(softmax_program().model, options, providers=["cpu"])
        self.assertEqual(session.session.program.explain()["fused"], [])


class Own(unittest.TestCase):
    def test_runs_on_keywords(self):
        session = redfuser.Session(softmax_program(), device="cpu")
        outputs = session.run(x=np.ones((3, 5), np.float32), mask=np.zeros((3, 5), np.float32))
        np.testing.assert_allclose(outputs["y"], 0.2, rtol=1e-6)
        self.assertEqual(outputs["y"].shape, (3, 5))
        self.assertEqual(session.output_shapes(x=(3, 5), mask=(3, 5))["top"], [3])

    def test_explains(self):
        program = softmax_program()
        self.assertEqual([region["class"] for region in program.explain()["fused"]], ["row"])
        self.assertTrue(program.explain("sm_90a"))
        session = redfuser.Session(program, device="cpu")
        session.run(x=np.ones((3, 5), np.float32), mask=np.zeros((3, 5), np.float32))
        self.assertTrue(session.explain())


if __name__ == "__main__":
    unittest.main()
