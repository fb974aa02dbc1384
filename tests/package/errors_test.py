"""Wrong input to the installed package gives an exception that names it, never a crash.

    python errors_test.py MODELS
"""

import _thread
import signal
import sys
import threading
import time
import unittest
import warnings

import numpy as np

import redfuser

sys.argv.pop(1)
HEADER = '<ir_version: 9, opset_import: ["" : 20]> '
EXP = HEADER + "g (float[n] x) => (float[n] y) { y = Exp(x) }"
# Runs for as long as it is let.
ENDLESS = HEADER + """g (int64 n, bool go, float[2] x) => (float[2] y) {
  y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
    d = Identity(c)  t = Sin(s) }> }"""
X = np.zeros(3, np.float32)


def model():
    return redfuser.Model.parse(EXP)


class Wrong(unittest.TestCase):
    def check(self, text, call, kind=redfuser.UserError):
        with self.assertRaisesRegex(kind, text):
            call()

    def test_classes(self):
        self.assertTrue(issubclass(redfuser.UserError, (redfuser.Error, ValueError)))
        self.assertTrue(issubclass(redfuser.UserError, ValueError))
        self.assertTrue(issubclass(redfuser.InternalError, redfuser.Error))
        self.assertTrue(issubclass(redfuser.InternalError, RuntimeError))

    def test_models(self):
        self.check("nowhere.onnx", lambda: redfuser.load("nowhere.onnx"))
        self.check("model: .*not an ONNX model", lambda: redfuser.load(b"\x08\x07junk"))
        self.check("is empty", lambda: redfuser.load(b""))
        self.check("a path, bytes or a ModelProto", lambda: redfuser.load(3))
        unknown = HEADER + "g (float[n] x) => (float[n] y) { y = Nonsense(x) }"
        self.check("Nonsense", lambda: redfuser.compile(redfuser.Model.parse(unknown)))

    def test_inputs(self):
        run = redfuser.Session(model(), device="cpu").run
        self.check('no input "z"', lambda: run(z=X))
        self.check('input "x" is missing', run)
        self.check('input "x" is float64', lambda: run(x=X.astype(np.float64)))
        self.check("2 dimensions", lambda: run(x=X.reshape(1, 3)))
        self.check('input "x": .*complex64', lambda: run(x=X.astype(np.complex64)))
        self.check('input "x": None', lambda: run(x=None))
        self.check('no output "q"', lambda: run({"x": X}, into={"q": X}))
        self.check("CUDA stream", lambda: run({"x": X}, stream=7))

    def test_outputs(self):
        session = redfuser.InferenceSession(model(), providers=["cpu"])
        self.check('no output "yy".*did you mean "y"', lambda: session.run(["yy"], {"x": X}))

    def test_providers(self):
        def open_with(*providers, **more):
            return lambda: redfuser.InferenceSession(model(), providers=list(providers), **more)

        self.check('no provider "CUDAExecutionProvidr"; did you mean "CUDAExecutionProvider"',
                   open_with("CUDAExecutionProvidr"))
        self.check('no option "exact_mask"; did you mean "exact_masks"',
                   open_with(("CUDAExecutionProvider", {"exact_mask": 1}), "CPUExecutionProvider"))
        self.check("option kept_shapes cannot be 'many'",
                   open_with(("CUDAExecutionProvider", {"kept_shapes": "many"})))
        self.check("device_id is 3", open_with(("CUDAExecutionProvider", {"device_id": 3})))
        self.check('no argument "colour"', open_with("cpu", colour=1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = open_with("TensorrtExecutionProvider", "CPUExecutionProvider")()
        self.assertIn("TensorrtExecutionProvider", str(caught[0].message))
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        open_with(("CUDAExecutionProvider", {"arena_extend_strategy": "kSameAsRequested", "use_tf32": 1}),
                  "CPUExecutionProvider")()

    def test_devices(self):
        self.check('device is cpu, cuda, reference or auto, not "tpu"',
                   lambda: redfuser.Session(model(), device="tpu"))
        self.check("kernel_cache is on, off or readonly",
                   lambda: redfuser.Session(model(), device="cpu", kernel_cache="maybe"))
        if redfuser.get_device() == "CPU":
            self.check("GPU|CUDA|driver", lambda: redfuser.Session(model(), device="cuda"))
            self.check("GPU|CUDA|driver",
                       lambda: redfuser.InferenceSession(model(), providers=["CUDAExecutionProvider"]))
            session = redfuser.Session(model(), device="cpu")
            self.check("to_device needs a session on cuda", lambda: session.to_device(X))

    def test_tensors_of_another_device(self):
        class Elsewhere:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **options):
                raise RuntimeError("the producer's own reason")

        session = redfuser.Session(model(), device="cpu")
        self.check("the producer's own reason", lambda: session.run(x=Elsewhere()))
        on_gpu = redfuser.Tensor.from_device_memory(256, "float32", [3], None)
        self.check('"x" lies on the GPU', lambda: session.run(x=on_gpu))
        self.check("lies on the GPU", on_gpu.numpy)

    def test_tensors(self):
        self.check("not an element type", lambda: redfuser.Tensor.from_memory(0, "float31", [1], None))
        self.check("other sizes", lambda: redfuser.Tensor.strings([2], ["a"]))
        tensor = redfuser.as_tensor(X)
        self.check("not hold strings", tensor.texts)
        self.check("neither a sequence", tensor.elements)
        self.check("by a copy", lambda: tensor.__array__(np.float64, copy=False))


class Threads(unittest.TestCase):
    def test_ctrl_c_ends_a_run(self):
        session = redfuser.Session(redfuser.Model.parse(ENDLESS), device="cpu")
        few = dict(go=np.array(True), x=np.ones(2, np.float32))
        # A parent may have had the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, _thread.interrupt_main).start()
        with self.assertRaises(KeyboardInterrupt):
            session.run(n=np.array(1 << 60), **few)
            time.sleep(5)
        self.assertEqual(session.run(n=np.array(3), **few)["y"].shape, (2,))

    def test_other_threads_go_on_during_a_run(self):
        session = redfuser.Session(redfuser.Model.parse(ENDLESS), device="cpu")
        beats, over = 0, threading.Event()

        def run():
            session.run(n=np.array(20000), go=np.array(True), x=np.ones(2, np.float32))
            over.set()

        thread = threading.Thread(target=run)
        thread.start()
        while not over.is_set():
            beats += 1
        thread.join()
        self.assertGreater(beats, 1000)

    def test_threads_share_a_program_and_a_session(self):
        program = redfuser.compile(model())
        shared = redfuser.Session(program, device="cpu", threads=1)
        failures = []

        def work(number):
            own = redfuser.Session(program, device="cpu", threads=1)
            for i in range(50):
                x = np.full(number + i % 3, number / 8, np.float32)
                for session in (own, shared):
                    if not np.allclose(session.run(x=x)["y"], np.exp(x)):
                        failures.append((number, i))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
