"""Sessions with the provider: options, faults, weights in files, bound memory, threads, and many sessions.

    python session_test.py LIBRARY MODELS
"""

import ctypes
import pathlib
import sys
import tempfile
import threading
import unittest

import numpy as np
import onnx
import onnxruntime
from provider import LIBRARY, NAME, quiet_options, session_of

MODELS = pathlib.Path(sys.argv.pop(1))
SOFTMAX = "g (float[n, 8] x) => (float[n, 8] y) { y = Softmax(x) }"
TEN = np.arange(80, dtype=np.float32).reshape(10, 8)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Claims(unittest.TestCase):
    def test_nodes_of_unknown_domains_are_left(self):
        graph = """g (float[n] x) => (float[n] y) { a = Exp(x) b = custom.Op(a) y = Neg(b) }"""
        with self.assertRaisesRegex(Exception, "custom"):
            session_of(graph)  # ONNX Runtime has no kernel either

    def test_a_local_function_is_inlined_and_claimed(self):
        model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
            g (float[n] x) => (float[n] y) { y = local.Twice(x) }
            <domain: "local", opset_import: ["" : 20]> Twice (a) => (b) { b = Add(a, a) }""")
        np.testing.assert_array_equal(session_of(model, whole=True).run(None, {"x": TEN[0]})[0], 2 * TEN[0])

    def test_nodes_without_a_path_between_them_are_one_claim(self):
        session = session_of("g (float[n] x, float[k, 2] z) => (float[n] y, float[k, 2] e) { y = Neg(x) e = Abs(z) }",
                             whole=True)
        outputs = session.run(None, {"x": TEN[0], "z": -TEN[:, :2]})
        np.testing.assert_array_equal(outputs[0], -TEN[0])
        np.testing.assert_array_equal(outputs[1], TEN[:, :2])

    def test_strings_are_left(self):
        session = session_of("g (string[n] s, float[n] x) => (string[n] t, float[n] y) { t = Identity(s) y = Neg(x) }")
        outputs = session.run(None, {"s": np.array(["a", "b"]), "x": TEN[0, :2]})
        self.assertEqual(list(outputs[0]), ["a", "b"])
        np.testing.assert_array_equal(outputs[1], -TEN[0, :2])

    def test_sizes_that_data_decide(self):
        session = session_of("g (float[n] x) => (int64[1, k] y, float[n] z) { y = NonZero(x) z = Neg(x) }", whole=True)
        for x in ([1, 0, 2], [0, 0, 0, 0], [5]):
            outputs = session.run(None, {"x": np.array(x, np.float32)})
            np.testing.assert_array_equal(outputs[0], [np.nonzero(x)[0]])

    def test_an_overridable_initializer_is_an_input(self):
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20]>'
                                        "g (float[n] x, float[1] s) => (float[n] y) { y = Mul(x, s) }")
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2], np.float32), "s"))
        session = session_of(model, whole=True)
        np.testing.assert_array_equal(session.run(None, {"x": TEN[0]})[0], 2 * TEN[0])
        np.testing.assert_array_equal(session.run(None, {"x": TEN[0], "s": TEN[0, 3:4]})[0], 3 * TEN[0])


class Options(unittest.TestCase):
    def test_every_option_is_taken(self):
        every = {"threads": "2", "memory_limit": "100000000", "tune": "1", "fuse": "0", "certify": "false",
                 "device": "auto", "tf32": "1", "exact_products": "1", "exact_masks": "1", "kept_shapes": "2",
                 "kernel_cache": "off", "kernel_cache_folder": tempfile.gettempdir()}
        for options in [every, *({name: value} for name, value in every.items())]:
            outputs = session_of(SOFTMAX, options, whole=True).run(None, {"x": TEN})
            np.testing.assert_allclose(outputs[0], softmax(TEN), rtol=1e-5)

    def test_the_limit_of_memory_holds(self):
        graph = "g (float[n, 8] x, float[8, 8] w) => (float[n, 8] y) { a = MatMul(x, w) y = MatMul(a, w) }"
        inputs = {"x": TEN, "w": np.eye(8, dtype=np.float32)}
        outputs = session_of(graph, {"memory_limit": "320"}, whole=True).run(None, inputs)
        np.testing.assert_array_equal(outputs[0], TEN)
        with self.assertRaisesRegex(Exception, "above the limit of 319"):
            session_of(graph, {"memory_limit": "319"}, whole=True).run(None, inputs)

    def test_a_misspelt_option(self):
        with self.assertRaisesRegex(Exception, 'no option "thread"; did you mean "threads"'):
            session_of(SOFTMAX, {"thread": "1"})

    def test_a_value_of_another_type(self):
        for name, value, wanted in (("threads", "many", "a number from 0"), ("threads", "-1", "a number from 0"),
                                    ("tune", "yes", "0 or 1"), ("device", "gpu", "cpu, cuda or auto"),
                                    ("kernel_cache", "1", "on, off or readonly")):
            with self.assertRaisesRegex(Exception, f'the option "{name}" is "{value}", not {wanted}'):
                session_of(SOFTMAX, {name: value})

    def test_compiled_models_are_not_written(self):
        with tempfile.TemporaryDirectory() as folder:
            options = quiet_options({"ep.context_enable": "1", "ep.context_file_path": f"{folder}/c.onnx"})
            with self.assertRaisesRegex(Exception, "ep.context_enable must be 0"):
                session_of(SOFTMAX, options=options)


class Faults(unittest.TestCase):
    def test_a_run_names_the_input(self):
        session = session_of("g (float[b, 2] x, float[b, 2] z) => (float[c, 2] y) { y = Concat<axis = 0>(x, z) }",
                             whole=True)
        with self.assertRaisesRegex(Exception, 'input "z" dimension 0 is 3, but "b" is 1, bound by input "x"'):
            session.run(None, {"x": TEN[:1, :2], "z": TEN[:3, :2]})
        outputs = session.run(None, {"x": TEN[:2, :2], "z": TEN[:2, :2]})
        self.assertEqual(outputs[0].shape, (4, 2))

    def test_a_run_names_the_node(self):
        session = session_of('g (float[n] x, int64[k] i) => (float[k] y) { [here] y = Gather(x, i) }', whole=True)
        with self.assertRaisesRegex(Exception, 'here'):
            session.run(None, {"x": TEN[0], "i": np.array([9])})

    def test_another_onnx_runtime_is_refused(self):
        library = ctypes.CDLL(LIBRARY)
        for version in ("1.22.9", "2.0.0", "none"):
            self.assertEqual(status_of(library, version), "RedFuser's execution provider needs ONNX Runtime 1.23 "
                                                          f"or a newer 1.x; this is {version}")


def status_of(library, version):
    """What CreateEpFactories reports to an ONNX Runtime of this version, whose interface makes statuses alone."""
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    messages = []
    make_status = create(lambda code, message: messages.append(message.decode()) or 1)
    api = (ctypes.c_void_p * 400)(ctypes.cast(make_status, ctypes.c_void_p).value)
    get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda _: ctypes.addressof(api))
    get_version = ctypes.CFUNCTYPE(ctypes.c_char_p)(lambda: version.encode())
    base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p).value,
                                 ctypes.cast(get_version, ctypes.c_void_p).value)
    factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(9)
    library.CreateEpFactories.restype = ctypes.c_void_p
    status = library.CreateEpFactories(b"name", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count))
    assert status == 1 and count.value == 0
    return messages[-1]


class Weights(unittest.TestCase):
    def setUp(self):
        self.weight = np.random.default_rng(3).standard_normal((8, 5)).astype(np.float32)
        self.model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20]>'
                                             "g (float[n, 8] x) => (float[n, 5] y) { y = MatMul(x, w) }")
        self.model.graph.initializer.append(onnx.numpy_helper.from_array(self.weight, "w"))

    def check(self, session):
        np.testing.assert_allclose(session.run(None, {"x": TEN})[0], TEN @ self.weight, rtol=1e-4, atol=1e-4)

    def test_in_the_model(self):
        self.check(session_of(self.model, whole=True))

    def test_in_a_file_they_are_mapped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save_model(self.model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
            session = session_of(str(path), whole=True)
            self.check(session)
            self.assertIn("weights.bin", pathlib.Path("/proc/self/maps").read_text())

    def test_in_a_file_of_a_model_from_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save_model(self.model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
            options = quiet_options({"session.model_external_initializers_file_folder_path": folder})
            self.check(session_of(path.read_bytes(), whole=True, options=options))

    def test_of_the_caller_in_place_of_a_files(self):
        given = onnxruntime.OrtValue.ortvalue_from_numpy(self.weight)
        other = onnx.ModelProto()
        other.CopyFrom(self.model)
        other.graph.initializer[0].raw_data = np.zeros_like(self.weight).tobytes()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save_model(other, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
            options = quiet_options()
            options.add_external_initializers(["w"], [given])
            self.check(session_of(str(path), whole=True, options=options))


class BoundMemory(unittest.TestCase):
    def test_outputs_arrive_in_bound_memory(self):
        session = session_of(SOFTMAX, whole=True)
        memory = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(TEN))
        binding = session.io_binding()
        binding.bind_cpu_input("x", TEN)
        binding.bind_ortvalue_output("y", memory)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(memory.numpy(), softmax(TEN), rtol=1e-5)

    def test_past_and_present_in_one_buffer(self):
        session = session_of("g (float[8, 4] past, int64[k, 1] at, float[k, 4] new) => (float[8, 4] present, float[8, 4] y)"
                             "{ present = ScatterND(past, at, new) y = Neg(present) }", whole=True)
        cache = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((8, 4), np.float32))
        expected = np.zeros((8, 4), np.float32)
        for position in range(8):
            binding = session.io_binding()
            binding.bind_ortvalue_input("past", cache)
            binding.bind_cpu_input("at", np.array([[position]]))
            binding.bind_cpu_input("new", np.full((1, 4), position + 1, np.float32))
            binding.bind_ortvalue_output("present", cache)
            binding.bind_output("y")
            session.run_with_iobinding(binding)
            expected[position] = position + 1
            np.testing.assert_array_equal(cache.numpy(), expected)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], -expected)


class Life(unittest.TestCase):
    def test_eight_threads_on_one_session(self):
        folder = MODELS / "bert.ts.eager"
        session = session_of(str(folder / "model.onnx"), {"threads": "1"}, whole=True)
        inputs, expected = dict(np.load(folder / "inputs.npz")), np.load(folder / "outputs.npz")["out"]
        right = []

        def work():
            for _ in range(4):
                right.append(np.allclose(session.run(None, inputs)[0], expected, rtol=1e-3, atol=1e-4))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 32)

    def test_the_memory_of_a_thousand_sessions_is_steady(self):
        after = []
        for count in range(1000):
            session = session_of(SOFTMAX, {"threads": "1"}, whole=True)
            session.run(None, {"x": TEN})
            del session
            if count % 250 == 249:
                after.append(resident_bytes())
        self.assertLess(after[-1] - after[0], 2 << 20, after)

    def test_the_library_may_be_registered_again(self):
        name = "again"
        for _ in range(2):
            onnxruntime.register_execution_provider_library(name, LIBRARY)
            onnxruntime.unregister_execution_provider_library(name)
        self.assertTrue(any(device.ep_name == NAME for device in onnxruntime.get_ep_devices()))


if __name__ == "__main__":
    unittest.main()
