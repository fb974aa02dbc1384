"""What scripts of ONNX Runtime give in place of what a file has: initializers, files of external data, sizes.

    python ort_model_test.py MODELS
"""

import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import redfuser

sys.argv.pop(1)
HEADER = '<ir_version: 9, opset_import: ["" : 20]> '
W, B = np.array([10, 20, 30], np.float32), np.array([1, 2, 3], np.float32)
X = np.ones((2, 3), np.float32)


def parsed(text):
    return onnx.parser.parse_model(HEADER + text)


def scaled():
    model = parsed("g (float[n, 3] x) => (float[n, 3] y) { z = Mul(x, w) y = Add(z, b) }")
    for name, value in (("w", np.ones(3, np.float32)), ("b", np.zeros(3, np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def value(array):
    return redfuser.OrtValue.ortvalue_from_numpy(array)


def session(source, options=None):
    return redfuser.InferenceSession(source, options, providers=["CPUExecutionProvider"])


class Initializers(unittest.TestCase):
    def with_weights(self, source, **weights):
        options = redfuser.SessionOptions()
        for name, array in weights.items():
            options.add_initializer(name, value(array))
        return session(source, options)

    def test_take_the_place_of_the_files(self):
        for source in (scaled(), scaled().SerializeToString()):
            np.testing.assert_array_equal(self.with_weights(source, w=W).run(None, {"x": X})[0], X * W)
            np.testing.assert_array_equal(self.with_weights(source, w=W, b=B).run(None, {"x": X})[0], X * W + B)

    def test_external_data_need_not_be_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.onnx")
            onnx.save(scaled(), path, save_as_external_data=True, location="m.data", size_threshold=0)
            held = path.with_name("m.data").read_bytes()
            np.testing.assert_array_equal(self.with_weights(path, w=W).run(None, {"x": X})[0], X * W)
            path.with_name("m.data").unlink()
            with self.assertRaisesRegex(redfuser.UserError, 'm.onnx: tensor "b": external data file "m.data"'):
                self.with_weights(path, w=W)
            options = redfuser.SessionOptions()
            options.add_external_initializers(["w", "b"], [value(W), value(B)])
            for source in (path, str(path), path.read_bytes()):
                np.testing.assert_array_equal(session(source, options).run(None, {"x": X})[0], X * W + B)
            options = redfuser.SessionOptions()
            options.add_external_initializers_from_files_in_memory(["m.data"], [held + b"more"], [len(held)])
            np.testing.assert_array_equal(session(path, options).run(None, {"x": X})[0], X)
            options.add_initializer("w", value(W))
            np.testing.assert_array_equal(session(path, options).run(None, {"x": X})[0], X * W)

    def test_one_that_a_run_may_give(self):
        model = parsed("g (float[n, 3] x, float[3] w = {1, 1, 1}) => (float[n, 3] y) { y = Mul(x, w) }")
        changed = self.with_weights(model, w=W)
        np.testing.assert_array_equal(changed.run(None, {"x": X})[0], X * W)
        np.testing.assert_array_equal(changed.run(None, {"x": X, "w": B})[0], X * B)
        self.assertEqual([arg.name for arg in changed.get_overridable_initializers()], ["w"])

    def test_own_interface(self):
        model = redfuser.load(scaled(), weights={"w": W, "b": B}, sizes={"n": 2})
        self.assertEqual(model.inputs[0].shape, [2, 3])
        self.assertEqual(np.asarray(redfuser.Session(model, device="cpu").run(x=X)["y"]).tolist(), (X * W + B).tolist())

    def test_faults(self):
        def check(text, call, kind=redfuser.UserError):
            with self.assertRaisesRegex(kind, text):
                call()

        options = redfuser.SessionOptions()
        options.add_initializer("w", value(W))
        check('an initializer "w" already', lambda: options.add_initializer("w", value(W)))
        check("2 names, but 1 external init", lambda: options.add_external_initializers(["a", "b"], [value(W)]))
        in_memory = options.add_external_initializers_from_files_in_memory
        check("1 names, but 0 buffers", lambda: in_memory(["m.data"], [], [3]))
        check("1 names, but 2 lengths", lambda: in_memory(["m.data"], [b""], [3, 4]))
        check('"m.data" has 2 bytes, not 3', lambda: in_memory(["m.data"], [b"ab"], [3]))
        in_memory(["m.data"], [b"abc"], [3])
        check('a file is given for "m.data", where no initializer', lambda: session(scaled(), options))
        check('a weight is given for "v", which is not an initializer', lambda: self.with_weights(scaled(), v=W))
        check(r'the weight given for "w" is float32\[2\], but the initializer is float32\[3\]',
              lambda: self.with_weights(scaled(), w=W[:2]))
        check(r'the weight given for "w" is float64\[3\]', lambda: self.with_weights(scaled(), w=W.astype(np.float64)))
        check('"w": .*complex64', lambda: redfuser.load(scaled(), weights={"w": W.astype(np.complex64)}))
        read = redfuser.load(scaled())
        check("this one has been", lambda: redfuser.load(read, weights={"w": W}))
        with tempfile.TemporaryDirectory() as folder:
            options = redfuser.SessionOptions()
            options.add_initializer("w", value(W))
            options.optimized_model_filepath = f"{folder}/fused.onnx"
            check("weights or inputs of the caller cannot be written", lambda: session(scaled(), options))
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


class Sizes(unittest.TestCase):
    def test_open_dimensions_are_closed_by_name_and_by_denotation(self):
        model = parsed("g (float[n, k, m] x) => (float[n, k, m] y) { y = Exp(x) }")
        model.graph.input[0].type.tensor_type.shape.dim[1].denotation = "DATA_CHANNEL"
        options = redfuser.SessionOptions()
        options.add_free_dimension_override_by_name("n", np.int64(2))
        options.add_free_dimension_override_by_name("other", 7)
        options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 3)
        closed = session(model, options)
        self.assertEqual(closed.get_inputs()[0].shape, [2, 3, "m"])
        self.assertEqual(closed.get_outputs()[0].shape, [2, 3, "m"])
        self.assertEqual(closed.run(None, {"x": np.ones((2, 3, 4), np.float32)})[0].shape, (2, 3, 4))
        with self.assertRaisesRegex(redfuser.UserError, '"x"'):
            closed.run(None, {"x": np.ones((1, 3, 4), np.float32)})
        options.add_free_dimension_override_by_name("n", -1)
        with self.assertRaisesRegex(redfuser.UserError, 'the size given for "n" is -1'):
            session(model, options)

    def test_shapes_are_those_of_onnxruntime(self):
        for text in ("g (float[?, 3] x) => (float[?, 3] y) { y = Exp(x) }",
                     "g (float[n, 3] x) => (float[?, 3] y) { y = Exp(x) }",
                     "g (float[n, 3] x) => (float[m, 3] y) { y = Exp(x) }",
                     "g (float[n, 3] x, float[m, 3] z) => (float[k, 3] y) { y = Concat<axis = 0>(x, z) }",
                     "g (float[n, 3] x, float[m, 3] z) => (float[?, ?] y) { y = Concat<axis = 0>(x, z) }",
                     "g (float x) => (float[n, 3] y) { y = Expand(x, s) }",
                     "g (float[n, 3] x) => (int64[2, found] y) { y = NonZero(x) }"):
            model = parsed(text)
            if "s)" in text:
                model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3]), "s"))
            theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            ours = session(model)
            with self.subTest(text):
                for read in ("get_inputs", "get_outputs"):
                    self.assertEqual([arg.shape for arg in getattr(ours, read)()],
                                     [arg.shape for arg in getattr(theirs, read)()])


class Providers(unittest.TestCase):
    def test_of_the_options(self):
        options = redfuser.SessionOptions()
        self.assertFalse(options.has_providers())
        options.add_provider("CPUExecutionProvider", {"memory_limit": "1"})
        self.assertTrue(options.has_providers())
        with self.assertRaisesRegex(redfuser.UserError, "above the limit of 1"):
            redfuser.InferenceSession(scaled(), options).run(None, {"x": X})
        given = redfuser.InferenceSession(scaled(), options, providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(given.run(None, {"x": X})[0], X)


if __name__ == "__main__":
    unittest.main()
