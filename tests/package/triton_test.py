"""The model of Triton's Python backend (examples/triton), run by a stand-in of the backend.

    python triton_test.py MODELS
"""

import importlib.util
import pathlib
import shutil
import sys
import tempfile
import types
import unittest

import numpy as np

import redfuser

MODELS = pathlib.Path(sys.argv.pop(1)).resolve()
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "triton"


class Tensor:
    def __init__(self, name, array):
        self._name, self._array = name, array

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array


class Request:
    def __init__(self, arrays, outputs):
        self._inputs, self._outputs = [Tensor(*item) for item in arrays.items()], outputs

    def inputs(self):
        return self._inputs

    def requested_output_names(self):
        return self._outputs


class Response:
    def __init__(self, output_tensors=(), error=None):
        self.arrays = {tensor.name(): tensor.as_numpy() for tensor in output_tensors}
        self.error = error


class Config:
    def __init__(self, rows):
        self.inputs, self.outputs, self._rows = [], [], rows

    def as_dict(self):
        return {"max_batch_size": self._rows}

    def add_input(self, info):
        self.inputs.append(info)

    def add_output(self, info):
        self.outputs.append(info)


class Triton(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        folder = pathlib.Path(shutil.copytree(EXAMPLE, pathlib.Path(cls.temporary.name, "bert")), "1")
        shutil.copy(MODELS / "bert.ts.eager" / "model.onnx", folder)
        sys.modules["triton_python_backend_utils"] = types.SimpleNamespace(
            Tensor=Tensor, InferenceResponse=Response, TritonError=str)
        spec = importlib.util.spec_from_file_location("model", folder / "model.py")
        cls.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.module)
        cls.model = cls.module.TritonPythonModel()
        cls.model.initialize({"model_instance_kind": "CPU", "model_instance_device_id": "0"})
        cls.direct = redfuser.Session(folder / "model.onnx", device="cpu")

    def drawn(self, rows, length=8):
        ids = np.random.default_rng(rows).integers(1, 90, [rows, length])
        return {"input_ids": ids, "attention_mask": np.ones_like(ids)}

    def test_responses_are_those_of_a_direct_session(self):
        for sizes in ([2], [1, 3, 2]):
            inputs = [self.drawn(rows) for rows in sizes]
            responses = self.model.execute([Request(one, ["out"]) for one in inputs])
            for one, response in zip(inputs, responses):
                self.assertIsNone(response.error)
                wanted = np.array(self.direct.run(one)["out"])
                np.testing.assert_allclose(response.arrays["out"], wanted, rtol=1e-4, atol=1e-5)

    def test_an_error_is_that_of_its_request(self):
        wrong = {**self.drawn(1), "input_ids": np.ones([1, 8], np.float32)}
        good, bad = self.model.execute([Request(self.drawn(2), ["out"]), Request(wrong, ["out"])])
        self.assertIsNone(good.error)
        self.assertIn("input_ids", bad.error)

    def test_the_configuration_is_that_of_the_file(self):
        config = self.module.TritonPythonModel.auto_complete_config(Config(0))
        self.assertEqual(config.inputs[0], {"name": "input_ids", "data_type": "TYPE_INT64", "dims": [-1, -1]})
        self.assertEqual(config.outputs[0], {"name": "out", "data_type": "TYPE_FP32", "dims": [-1, -1, 64]})
        config = self.module.TritonPythonModel.auto_complete_config(Config(8))
        self.assertEqual(config.outputs[0]["dims"], [-1, 64])


if __name__ == "__main__":
    unittest.main()
