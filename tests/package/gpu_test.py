"""Tensors and streams of a GPU, on the driver of tests/fake_cuda: memory is the host's, kernels do not run.

    REDFUSER_CUDA_LIBRARIES=FAKES python gpu_test.py MODELS
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import redfuser
from redfuser.sessions import stream_handle

sys.argv.pop(1)
EXP = '<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }'
CUDA = (2, 0)


class OnGpu:
    """A tensor that another library has on the GPU; `streams` are those that consumers asked for."""

    def __init__(self, values):
        self.values, self.streams = values, []

    def __dlpack_device__(self):
        return CUDA

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        tensor = redfuser.Tensor.from_device_memory(self.values.ctypes.data, "float32", list(self.values.shape),
                                                    self.values)
        return tensor.__dlpack__(max_version=max_version)


def session(model=EXP):
    return redfuser.Session(redfuser.Model.parse(model), device="cuda", kernel_cache="off")


class Gpu(unittest.TestCase):
    def test_takes_and_gives_gpu_tensors(self):
        run, x = session(), OnGpu(np.ones(64, np.float32))
        y = run.run(x=x)["y"]
        self.assertEqual((y.device, y.shape, y.__dlpack_device__()), ("cuda", (64,), CUDA))
        self.assertEqual(x.streams, [run._core.stream])
        back = redfuser.as_tensor(y)
        self.assertEqual(back.data_ptr, y.data_ptr)
        self.assertEqual(run.to_host(y).device, "cpu")
        with self.assertRaisesRegex(redfuser.UserError, "lies on the GPU"):
            np.asarray(y)

    def test_host_tensors_stay_on_the_host(self):
        self.assertEqual(session().run(x=np.ones(3, np.float32))["y"].device, "cpu")

    def test_runs_on_the_callers_stream(self):
        run, x = session(), OnGpu(np.ones(64, np.float32))
        others = session(), session()
        given, other = (of._core.stream for of in others)

        class Stream:
            cuda_stream = given

        for stream in (Stream(), given):
            y = run.run({"x": x}, stream=stream)["y"]
            self.assertEqual(x.streams[-1], given)
            for consumer in (given, other, -1, None):
                y.__dlpack__(stream=consumer, max_version=(1, 0))
        self.assertEqual([stream_handle(stream) for stream in (None, 0, 2, Stream())], [0, 1, 2, given])

    def test_writes_into_gpu_memory(self):
        target = OnGpu(np.zeros(64, np.float32))
        y = session().run({"x": np.ones(64, np.float32)}, into={"y": target})["y"]
        self.assertEqual(y.data_ptr, target.values.ctypes.data)
        small = OnGpu(np.zeros(63, np.float32))
        with self.assertRaisesRegex(redfuser.UserError, 'output "y" is given memory for'):
            session().run({"x": np.ones(64, np.float32)}, into={"y": small})

    def test_bindings(self):
        run = redfuser.InferenceSession(redfuser.Model.parse(EXP),
                                        providers=[("CUDAExecutionProvider", {"kernel_cache": "off"})])
        self.assertEqual(run.get_providers()[0], "CUDAExecutionProvider")
        binding = run.io_binding()
        x = redfuser.OrtValue.ortvalue_from_numpy(np.ones(64, np.float32), "cuda")
        binding.bind_ortvalue_input("x", x)
        binding.bind_output("y", "cuda")
        run.run_with_iobinding(binding)
        self.assertEqual(binding.get_outputs()[0].device_name(), "cuda")
        self.assertEqual(binding.copy_outputs_to_cpu()[0].shape, (64,))
        binding.clear_binding_inputs()
        binding.bind_cpu_input("x", np.ones(64, np.float32))
        run.run_with_iobinding(binding)
        self.assertEqual(binding.get_outputs()[0].device_name(), "cuda")
        host = run.run_with_ort_values(None, {"x": x})[0]
        self.assertEqual(host.device_name(), "cuda")

    def test_profiles_runs_on_both_memories(self):
        with tempfile.TemporaryDirectory() as folder:
            options = redfuser.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, f"{folder}/p"
            run = redfuser.InferenceSession(redfuser.Model.parse(EXP), options, providers=["CUDAExecutionProvider"])
            x = np.ones(64, np.float32)
            for _ in range(2):
                run.run(None, {"x": x})
                run.run_with_ort_values(None, {"x": redfuser.OrtValue.ortvalue_from_numpy(x, "cuda")})
            events = json.loads(pathlib.Path(run.end_profiling()).read_text())["traceEvents"]
        self.assertEqual(len([event for event in events if event["ph"] == "X" and event["tid"] == 1]), 4)

    def test_an_nvrtc_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            fakes = pathlib.Path(os.environ["REDFUSER_CUDA_LIBRARIES"])
            for name in ("libcuda.so.1", "libnvrtc.so.13"):
                (pathlib.Path(folder) / name).symlink_to(fakes / "libcuda.so.1")
            code = f"""import redfuser
try:
    redfuser.Session(redfuser.Model.parse({EXP!r}), device="cuda", kernel_cache="off")
except redfuser.UserError as error:
    print(error)"""
            text = subprocess.run([sys.executable, "-c", code], env={**os.environ, "REDFUSER_CUDA_LIBRARIES": folder},
                                  check=True, capture_output=True, text=True).stdout
        self.assertIn("it has no nvrtcVersion", text)

    def test_other_gpus_are_refused(self):
        class OnTheOther(OnGpu):
            def __dlpack__(self, **options):
                raise BufferError("it lies on GPU 1")

        with self.assertRaisesRegex(redfuser.UserError, 'input "x": it lies on GPU 1'):
            session().run(x=OnTheOther(np.ones(64, np.float32)))


if __name__ == "__main__":
    if redfuser.get_device() != "GPU":
        print("skipped: REDFUSER_CUDA_LIBRARIES does not name the fake driver of tests/fake_cuda")
    else:
        unittest.main()
