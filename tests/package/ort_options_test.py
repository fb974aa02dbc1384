"""What scripts of ONNX Runtime set and ask for beside runs: options, metadata, providers, profiles, the end of a run.

    python ort_options_test.py MODELS
"""

import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np
import onnx
from onnx import helper

import redfuser as ort

sys.argv.pop(1)
HEADER = '<ir_version: 9, opset_import: ["" : 20]> '
SOFTMAX = HEADER + "g (float[n, 4] x) => (float[n, 4] y) { y = Softmax(x) }"
# Runs for as long as it is let.
ENDLESS = HEADER + """g (int64 n, bool go, float[2] x) => (float[2] y) {
  y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
    d = Identity(c)  t = Sin(s) }> }"""
X = np.zeros((2, 4), np.float32)


def model(text=SOFTMAX):
    return ort.Model.parse(text)


class Options(unittest.TestCase):
    def test_what_scripts_set(self):
        options = ort.SessionOptions()
        for name, value in dict(
                intra_op_num_threads=np.int64(1), inter_op_num_threads=1, log_severity_level=3, log_verbosity_level=1,
                logid="a", enable_cpu_mem_arena=False, enable_mem_pattern=False, enable_mem_reuse=False,
                use_deterministic_compute=True, execution_mode=ort.ExecutionMode.ORT_PARALLEL,
                execution_order=ort.ExecutionOrder.PRIORITY_BASED,
                graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED).items():
            setattr(options, name, value)
            self.assertEqual(getattr(options, name), value)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.assertEqual(options.get_session_config_entry("session.intra_op.allow_spinning"), "0")
        options.add_free_dimension_override_by_name("n", 2)
        session = ort.InferenceSession(onnx.parser.parse_model(SOFTMAX), sess_options=options,
                                       providers=["CPUExecutionProvider"], provider_options=[{}],
                                       enable_fallback=False, disabled_optimizers=["a"])
        session.disable_fallback()
        run = ort.RunOptions()
        run.log_severity_level, run.only_execute_path_to_fetches, run.logid = 3, True, "r"
        run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        np.testing.assert_allclose(session.run(["y"], {"x": X}, run)[0], 0.25)
        for call in (ort.set_default_logger_severity, ort.set_default_logger_verbosity):
            call(3)
        ort.preload_dlls(cuda=True)
        ort.disable_telemetry_events()
        self.assertEqual(ort.get_version_string(), ort.__version__)
        self.assertEqual(ort.get_all_providers(), ort.get_available_providers())

    def test_faults(self):
        options = ort.SessionOptions()
        with self.assertRaisesRegex(AttributeError, 'no attribute "intra_op_num_thread"; did you mean "intra_op_num_threads"'):
            options.intra_op_num_thread = 1
        with self.assertRaisesRegex(TypeError, "intra_op_num_threads is '4', but takes a value of type int"):
            options.intra_op_num_threads = "4"
        with self.assertRaisesRegex(AttributeError, 'did you mean "terminate"|no attribute "terminated"'):
            ort.RunOptions().terminated = True
        with self.assertRaisesRegex(ort.UserError, 'no entry "session.x"'):
            options.get_session_config_entry("session.x")
        with self.assertRaisesRegex(ort.UserError, "libcustom.so: .*local function"):
            options.register_custom_ops_library("libcustom.so")
        with self.assertRaisesRegex(ort.UserError, 'no argument "provider"; did you mean "providers"'):
            ort.InferenceSession(model(), provider=["cpu"])

    def test_the_optimised_model_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.optimized_model_filepath = pathlib.Path(folder, "fused.onnx")
            ort.InferenceSession(model(), options, providers=["cpu"])
            self.assertEqual(onnx.load(options.optimized_model_filepath).functions[0].domain, "ai.redfuser")
            options.optimized_model_filepath = f"{folder}/nowhere/fused.onnx"
            with self.assertRaisesRegex(ort.UserError, "nowhere"):
                ort.InferenceSession(model(), options, providers=["cpu"])


class Sessions(unittest.TestCase):
    def test_the_metadata_of_the_file(self):
        graph = onnx.parser.parse_model(SOFTMAX).graph
        graph.doc_string = "of the graph"
        made = helper.make_model(graph, producer_name="p", domain="d", doc_string="of the model", model_version=7,
                                 opset_imports=[helper.make_opsetid("", 20)])
        helper.set_model_props(made, {"names": "{0: 'cat'}", "stride": "32"})
        found = ort.InferenceSession(made, providers=["cpu"]).get_modelmeta()
        self.assertEqual(found, ort.ModelMetadata({"names": "{0: 'cat'}", "stride": "32"}, "of the model", "d",
                                                  "of the graph", "g", "p", 7))

    def test_other_providers(self):
        session = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])
        session.set_providers(["CPUExecutionProvider"], [{"memory_limit": 1 << 30}])
        np.testing.assert_allclose(session.run(None, {"x": X})[0], 0.25)
        with self.assertRaisesRegex(ort.UserError, 'no provider "CPUExecutionProvidr"; did you mean'):
            session.set_providers(["CPUExecutionProvidr"])
        np.testing.assert_allclose(session.run(None, {"x": X})[0], 0.25)

    def test_a_warning_is_that_of_the_callers_line(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ort.InferenceSession(model(), providers=["DmlExecutionProvider", "CPUExecutionProvider"])
        self.assertEqual(caught[0].filename, __file__)

    def test_profiles(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "p")
            session = ort.InferenceSession(model(), options, providers=["cpu"])
            for _ in range(3):
                session.run(None, {"x": X})
            path = session.end_profiling()
            self.assertTrue(path.startswith(options.profile_file_prefix))
            steps = [event for event in json.loads(pathlib.Path(path).read_text())["traceEvents"] if event["ph"] == "X"]
            self.assertEqual(len(steps), 3)
            for step, after in zip(steps, steps[1:]):
                self.assertLessEqual(step["ts"] + step["dur"], after["ts"])
            self.assertGreater(session.get_profiling_start_time_ns(), 0)
            with self.assertRaisesRegex(ort.UserError, "not profiled"):
                session.end_profiling()
            session.run(None, {"x": X})


class Runs(unittest.TestCase):
    def test_in_a_thread_of_its_own(self):
        session, found, over = ort.InferenceSession(model(), providers=["cpu"]), [], threading.Event()

        def take(outputs, data, error):
            found.append((outputs, data, error))
            over.set()

        for feed in ({"x": X}, {"z": X}):
            session.run_async(["y"], feed, take, "mine", None)
            self.assertTrue(over.wait(60))
            over.clear()
        (outputs, data, error), (none, _, problem) = found
        self.assertEqual((data, error, none), ("mine", "", []))
        np.testing.assert_allclose(outputs[0], 0.25)
        self.assertIn('no input "z"', problem)

    def test_a_flag_ends_a_run(self):
        session = ort.InferenceSession(model(ENDLESS), providers=["cpu"])
        few = dict(go=np.array(True), x=np.ones(2, np.float32))
        options, binding = ort.RunOptions(), session.io_binding()
        for name, value in dict(n=np.array(1 << 60), **few).items():
            binding.bind_cpu_input(name, value)
        binding.bind_output("y")
        values = {name: ort.OrtValue.ortvalue_from_numpy(np.asarray(v)) for name, v in dict(n=1 << 60, **few).items()}
        for run in (lambda: session.run(None, dict(n=np.array(1 << 60), **few), options),
                    lambda: session.run_with_ort_values(None, values, options),
                    lambda: session.run_with_iobinding(binding, options)):
            options.terminate = False
            timer = threading.Timer(0.2, lambda: setattr(options, "terminate", True))
            timer.start()
            with self.assertRaisesRegex(ort.UserError, "ended by the flag terminate"):
                run()
            self.assertTrue(options.terminate)
        start = time.monotonic()
        with self.assertRaisesRegex(ort.UserError, "terminate"):
            session.run(None, dict(n=np.array(1 << 60), **few), options)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(session.run(None, dict(n=np.array(3), **few))[0].shape, (2,))


if __name__ == "__main__":
    unittest.main()
