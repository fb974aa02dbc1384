"""The provider whose tensors are in the GPU's memory, on a GPU: results of models, bound buffers, streams.

    python gpu_results_test.py LIBRARY MODELS
"""

import ctypes
import pathlib
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from provider import quiet_options, source_of

NAME = "RedFuserCudaExecutionProvider"
MODELS = pathlib.Path(sys.argv.pop(1))
SKIPPED = 77
SOFTMAX = "g (float[n, 8] x) => (float[n, 8] y) { y = Softmax(x) }"
# The rows of `past` and then those of `new`; `sum` shows that past and present are read after the write.
CACHE = """g (float[2, 16, 8] past, float[2, 1, 8] new, int64[2] index) => (float[2, 16, 8] present, float[2, 1, 8] sum) {
             present = TensorScatter<axis = 1>(past, new, index)
             axes = Constant<value_ints = [1]>() sum = ReduceSum(present, axes) }"""


def session_of(model, whole=True, opset=20, **options):
    entries = {"session.disable_cpu_ep_fallback": "1"} if whole else {}
    providers = [(NAME, options)] + ([] if whole else ["CPUExecutionProvider"])
    source = source_of(model)
    if opset != 20:
        model = onnx.load_from_string(source)
        model.opset_import[0].version = opset
        source = model.SerializeToString()
    return onnxruntime.InferenceSession(source, quiet_options(entries), providers=providers, enable_fallback=False)


def on_gpu(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0)


def rows(n, start=0):
    return np.random.default_rng(start + n).normal(size=(n, 8)).astype(np.float32)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Models(unittest.TestCase):
    def test_every_model_has_its_results(self):
        folders = sorted(path.parent for path in MODELS.glob("*/model.onnx"))
        self.assertGreater(len(folders), 0)
        for folder in folders:
            with self.subTest(folder.name):
                session = session_of(str(folder / "model.onnx"))
                names = [output.name for output in session.get_outputs()]
                outputs = dict(zip(names, session.run(None, dict(np.load(folder / "inputs.npz")))))
                for name, expected in np.load(folder / "outputs.npz").items():
                    np.testing.assert_allclose(outputs[name], expected, rtol=1e-3, atol=1e-4, err_msg=name)


class Runs(unittest.TestCase):
    def test_bound_memory_is_read_and_written_in_place(self):
        session = session_of(SOFTMAX)
        for n in (4, 2, 300):
            x, y = on_gpu(rows(n)), on_gpu(np.zeros((n, 8), np.float32))
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", x)
            binding.bind_ortvalue_output("y", y)
            for start in (0, 100):
                x.update_inplace(rows(n, start))
                session.run_with_iobinding(binding)
                np.testing.assert_allclose(y.numpy(), softmax(rows(n, start)), rtol=1e-5)

    def test_a_result_is_the_next_runs_input(self):
        session = session_of(SOFTMAX)
        value, expected = on_gpu(rows(50)), rows(50)
        for _ in range(5):
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_output("y", "cuda")
            session.run_with_iobinding(binding)
            [value] = binding.get_outputs()
            expected = softmax(expected)
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-5)

    def test_past_and_present_are_one_buffer(self):
        session = session_of(CACHE, opset=24)
        cache, expected = np.zeros((2, 16, 8), np.float32), np.zeros((2, 16, 8), np.float32)
        buffer = on_gpu(cache)
        for step in range(6):
            new = rows(2, step).reshape(2, 1, 8)
            index = np.array([step, 2 * step])
            binding = session.io_binding()
            binding.bind_ortvalue_input("past", buffer)
            binding.bind_ortvalue_output("present", buffer)
            binding.bind_ortvalue_input("new", on_gpu(new))
            binding.bind_cpu_input("index", index)
            binding.bind_output("sum")
            session.run_with_iobinding(binding)
            for batch in range(2):
                expected[batch, index[batch]] = new[batch, 0]
            np.testing.assert_array_equal(buffer.numpy(), expected)
            np.testing.assert_allclose(binding.copy_outputs_to_cpu()[-1], expected.sum(1, keepdims=True), atol=1e-5)

    def test_values_pass_between_providers(self):
        graph = """g (float[n, 8] x) => (float[n, 8] z) {
                     y = Softmax(x) s = Cast<to = 8>(y) t = Cast<to = 1>(s) z = Softmax(t) }"""
        session = session_of(graph, whole=False)
        for n in (2, 3):
            z = session.run(None, {"x": rows(n)})[0]
            np.testing.assert_allclose(z, softmax(softmax(rows(n))), rtol=1e-4)

    def test_a_run_is_on_the_stream_of_the_caller(self):
        cuda = ctypes.CDLL("libcuda.so.1")
        stream = ctypes.c_void_p()
        on_gpu(rows(1))  # the device's context is the current one after this
        context = ctypes.c_void_p()
        self.assertEqual(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), 0)
        self.assertEqual(cuda.cuCtxSetCurrent(context), 0)
        self.assertEqual(cuda.cuStreamCreate(ctypes.byref(stream), 1), 0)
        session = session_of(SOFTMAX, user_compute_stream=str(stream.value))
        for n in (4, 7):
            np.testing.assert_allclose(session.run(None, {"x": rows(n)})[0], softmax(rows(n)), rtol=1e-5)


if __name__ == "__main__":
    if not any(device.ep_name == NAME for device in onnxruntime.get_ep_devices()):
        print("ONNX Runtime offers no GPU here")
        sys.exit(SKIPPED)
    unittest.main()
