"""A model that is replaced in the folder is served as a whole, or not at all."""

import os
import threading
import unittest

import numpy as np
import tritonclient.http

from serve_server import tensors, write_affine

X = np.ones([3, 256], np.float32)


class Load:
    """Threads that send requests to a model, and every factor that an answer has shown, in order."""

    def __init__(self, server, model, threads=4):
        self.server, self.model = server, model
        self.seen, self.failures = [], []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self):
        client = self.server.client(network_timeout=120)
        while not self._ended.is_set():
            try:
                y = client.infer(self.model, tensors({"x": X}, tritonclient.http)).as_numpy("y")
            except Exception as error:
                self.failures.append(str(error))
                continue
            self.seen.append(float(y[0, 0]) / 2 if (y == y[0, 0]).all() else "half")

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.server.wait(lambda: len(self.seen) > 20)
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()


class Reload(unittest.TestCase):
    server = None

    def test_a_rewritten_model_is_served_and_never_half(self):
        for name, external in (("replaced", False), ("weights", True)):
            with self.subTest(name), Load(self.server, name) as load:
                path = self.server.folder / name / "model.onnx"
                for factor in (2, 3):
                    write_affine(path, factor, external)  # in place
                    self.server.wait(lambda: load.seen[-1] == factor)
            self.assertEqual(load.failures, [])
            self.assertEqual(set(load.seen), {1.0, 2.0, 3.0})

    def test_a_failing_reload_keeps_the_model_and_says_why(self):
        for name, file, external in (("broken", "model.onnx", False), ("truncated", "model.onnx.data", True)):
            path = self.server.folder / name / "model.onnx"
            with self.subTest(name), Load(self.server, name) as load:
                os.truncate(path.with_name(file), 200)
                self.server.wait(lambda: self.server.problem(name) is not None)
                self.assertIn(str(path.parent), self.server.problem(name))
                self.server.wait(lambda: f'model "{name}" is not served' in self.server.output())
                answered = len(load.seen)
                self.server.wait(lambda: len(load.seen) > answered + 20)
                write_affine(path.with_suffix(".new"), 5)
                os.rename(path.with_suffix(".new"), path)
                self.server.wait(lambda: load.seen[-1] == 5)
                self.assertIsNone(self.server.problem(name))
            self.assertEqual(load.failures, [])
            self.assertEqual(set(load.seen), {1.0, 5.0})

    def test_models_come_and_go(self):
        client = self.server.client()
        write_affine(self.server.folder / "late.onnx", 4)
        self.server.wait(lambda: self.server.ask("/v2/models/late")[0] == 200)
        y = client.infer("late", tensors({"x": X}, tritonclient.http)).as_numpy("y")
        np.testing.assert_array_equal(y, 8 * X)
        client.unload_model("late")
        self.assertEqual(self.server.ask("/v2/models/late")[0], 404)
        client.load_model("late")
        self.assertEqual(self.server.ask("/v2/models/late")[0], 200)
        (self.server.folder / "late.onnx").unlink()
        self.server.wait(lambda: self.server.ask("/v2/models/late")[0] == 404)
