"""The provider whose tensors are in the GPU's memory, on the driver of tests/fake_cuda: its memory is the host's, copies
are done, and kernels do not run. So the graphs here have results that are copies.

    REDFUSER_CUDA_LIBRARIES=FAKES python gpu_memory_test.py LIBRARY
"""

import ctypes
import os
import pathlib
import threading
import unittest

import numpy as np
import onnxruntime
from provider import source_of, quiet_options

NAME = "RedFuserCudaExecutionProvider"
NVIDIA = 0x10DE
FAKE = ctypes.CDLL(str(pathlib.Path(os.environ["REDFUSER_CUDA_LIBRARIES"]) / "libcuda.so.1"))
FLAT = "g (float[n, 8] x) => (float[k] y) { shape = Constant<value_ints = [-1]>() y = Reshape(x, shape) }"
# ONNX Runtime has the strings.
BETWEEN = """g (float[n, 8] x) => (float[k, 2] z) {
               long = Constant<value_ints = [-1]>() y = Reshape(x, long)
               s = Cast<to = 8>(y) t = Cast<to = 1>(s)
               pairs = Constant<value_ints = [-1, 2]>() z = Reshape(t, pairs) }"""


def rows(n, start=0):
    return np.arange(start, start + n * 8, dtype=np.float32).reshape(n, 8)


def session_of(model, whole=True, **options):
    entries = {"session.disable_cpu_ep_fallback": "1"} if whole else {}
    providers = [(NAME, {"kernel_cache": "off", **options})] + ([] if whole else ["CPUExecutionProvider"])
    return onnxruntime.InferenceSession(source_of(model), quiet_options(entries), providers=providers,
                                        enable_fallback=False)


def on_gpu(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0)


class Device(unittest.TestCase):
    def test_one_gpu_is_offered(self):
        [device] = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
        self.assertEqual(device.device.vendor_id, NVIDIA)
        self.assertEqual(device.device.type, onnxruntime.OrtHardwareDeviceType.GPU)

    def test_memory_of_the_gpu_has_what_is_copied_there(self):
        value = on_gpu(rows(3))
        self.assertEqual(value.device_name().lower(), "cuda")
        np.testing.assert_array_equal(value.numpy(), rows(3))
        value.update_inplace(rows(3, 7))
        np.testing.assert_array_equal(value.numpy(), rows(3, 7))

    def test_copies_are_on_a_stream(self):
        [device] = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
        stream = device.create_sync_stream()
        self.assertNotEqual(stream.get_handle(), 0)
        source, target = on_gpu(rows(2)), on_gpu(np.zeros((2, 8), np.float32))
        onnxruntime.copy_tensors([source], [target], stream)
        np.testing.assert_array_equal(target.numpy(), rows(2))


class Runs(unittest.TestCase):
    def test_arrays_of_the_host(self):
        session = session_of(FLAT)
        for n in (4, 2, 4, 0, 9):
            np.testing.assert_array_equal(session.run(None, {"x": rows(n)})[0], rows(n).ravel())

    def test_bound_memory_is_read_and_written_in_place(self):
        session = session_of(FLAT)
        x, y = on_gpu(rows(4)), on_gpu(np.zeros(32, np.float32))
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", x)
        binding.bind_ortvalue_output("y", y)
        for start in (0, 100):
            x.update_inplace(rows(4, start))
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(y.numpy(), rows(4, start).ravel())

    def test_an_output_that_the_run_allocates_stays_on_the_gpu(self):
        session = session_of(FLAT)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", on_gpu(rows(4)))
        binding.bind_output("y", "cuda")
        session.run_with_iobinding(binding)
        [y] = binding.get_outputs()
        self.assertEqual(y.device_name().lower(), "cuda")
        np.testing.assert_array_equal(y.numpy(), rows(4).ravel())

    def test_sizes_that_data_decide(self):
        session = session_of("g (float[n, 8] x, int64[2] sizes) => (float[a, b] y) { y = Reshape(x, sizes) }")
        for n, sizes in ((2, (4, 4)), (3, (2, 12))):
            y = session.run(None, {"x": rows(n), "sizes": np.array(sizes)})[0]
            self.assertEqual(y.shape, sizes)  # the fake GPU's kernels compute nothing

    def test_values_pass_between_providers(self):
        session = session_of(BETWEEN, whole=False)
        for n in (2, 3):
            np.testing.assert_array_equal(session.run(None, {"x": rows(n)})[0], rows(n).reshape(-1, 2))

    def test_threads_share_a_session(self):
        session = session_of(FLAT)
        right = []

        def run(number):
            for _ in range(20):
                x = rows(number + 1, 1000 * number)
                right.append(np.array_equal(session.run(None, {"x": x})[0], x.ravel()))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 160)

    def test_a_run_is_on_the_stream_of_the_caller(self):
        stream = ctypes.c_void_p()
        self.assertEqual(FAKE.cuStreamCreate(ctypes.byref(stream), 1), 0)
        session = session_of("g (float[n, 8] x) => (float[n, 8] y) { y = Exp(x) }",
                             user_compute_stream=str(stream.value))
        session.run(None, {"x": rows(4)})
        FAKE.fake_launches_on.argtypes = [ctypes.c_void_p]
        self.assertGreater(FAKE.fake_launches_on(stream), 0)

    def test_memory_is_used_again(self):
        session = session_of(FLAT)
        session.run(None, {"x": rows(64)})
        before = FAKE.fake_allocations()
        for _ in range(10):
            session.run(None, {"x": rows(64)})
        self.assertEqual(FAKE.fake_allocations(), before)


class Faults(unittest.TestCase):
    def test_the_device_is_no_option(self):
        with self.assertRaisesRegex(Exception, f'{NAME} has no option "device"'):
            session_of(FLAT, device="cuda")

    def test_a_stream_that_is_no_number(self):
        with self.assertRaisesRegex(Exception, 'the option "user_compute_stream" is "mine", not a number from 0'):
            session_of(FLAT, user_compute_stream="mine")

    def test_a_lack_of_memory(self):
        session = session_of(FLAT)
        with self.assertRaisesRegex(Exception, "(?i)memory|alloc"):
            session.run(None, {"x": np.zeros((1 << 26, 8), np.float32)})
        np.testing.assert_array_equal(session.run(None, {"x": rows(2)})[0], rows(2).ravel())


if __name__ == "__main__":
    unittest.main()
