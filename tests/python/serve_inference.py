"""Results over REST are those of a direct session."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import unittest
import urllib.request

import numpy as np
import tritonclient.grpc
import tritonclient.http

import redfuser
from redfuser.serve.datatypes import DATATYPES, to_bytes, to_values
from redfuser.serve.messages import LENGTH_HEADER
from redfuser.tensors import numpy_dtype
from serve_server import tensors

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ask_server.py"
CLIENTS, REQUESTS = 64, 4
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def drawn(seed):
    """Inputs of the BERT model: another number of rows and another length for each seed."""
    generator = np.random.default_rng(seed)
    sizes = [int(generator.integers(1, 4)), int(generator.choice([8, 16, 24]))]
    return {"input_ids": generator.integers(1, 90, sizes), "attention_mask": np.ones(sizes, np.int64)}


class Inference(unittest.TestCase):
    server = None

    def test_results_equal_a_direct_session_under_64_clients(self):
        direct = redfuser.Session(self.server.folder / "bert" / "model.onnx", device="cpu")
        cases = [[drawn(client * REQUESTS + i) for i in range(REQUESTS)] for client in range(CLIENTS)]
        wanted = [[np.array(direct.run(inputs)["out"]) for inputs in mine] for mine in cases]

        def run(mine):
            client = self.server.client(network_timeout=120)
            return [client.infer("bert", tensors(inputs, tritonclient.http, binary_data=i % 2 == 0)).as_numpy("out")
                    for i, inputs in enumerate(mine)]

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            for found, expected in zip(pool.map(run, cases), wanted):
                for one, other in zip(found, expected):
                    np.testing.assert_allclose(one, other, **TOLERANCE)

        self.server.wait(lambda: self.sum_of("requests", 'status="200"') >= CLIENTS * REQUESTS)
        self.assertLess(self.sum_of("run_seconds_count"), self.sum_of("requests") / 2, "requests did not share runs")

    def sum_of(self, metric, tag=""):
        """Of a metric of the BERT model, over its replicas and tags."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.metrics}/metrics") as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines
                   if line.startswith(f"ray_redfuser_{metric}") and 'model="bert"' in line and tag in line)

    def test_a_request_of_json_alone(self):
        body = {"id": "7", "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 256], "data": [[1.0] * 256]}]}
        status, answer = self.server.ask("/v2/models/affine/infer", json.dumps(body).encode())
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["id"], answer["model_name"], answer["model_version"]), ("7", "affine", "1"))
        self.assertEqual(answer["outputs"], [{"name": "y", "datatype": "FP32", "shape": [1, 256], "data": [2.0] * 256}])

    def test_every_datatype_passes_unchanged(self):
        values = {name: np.array([0, 1, 3]).astype(numpy_dtype(element)) for name, element in DATATYPES.items()}
        values["BYTES"] = np.array([b"", b"text", "ü".encode()], object)
        described = [{"name": f"x_{name}", "datatype": name, "shape": [3]} for name in values]
        raw = [to_bytes(values[entry["datatype"]]) for entry in described]
        binary = [{**entry, "parameters": {"binary_data_size": len(part)}} for entry, part in zip(described, raw)]
        listed = [{**entry, "data": to_values(values[entry["datatype"]])} for entry in described]
        for inputs, parts in ((binary, raw), (listed, [])):
            head = json.dumps({"inputs": inputs}).encode()
            status, answer = self.server.ask("/v2/models/types/infer", head + b"".join(parts), {LENGTH_HEADER: str(len(head))})
            self.assertEqual(status, 200, answer)
            found = {entry["name"]: (entry["datatype"], entry["data"]) for entry in answer["outputs"]}
            self.assertEqual(found, {f"y_{name}": (name, to_values(array)) for name, array in values.items()})
        client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.server.grpc}")
        inputs = [tritonclient.grpc.InferInput(entry["name"], [3], entry["datatype"]) for entry in described]
        for tensor, part in zip(inputs, raw):
            tensor._raw_content = part
        result = client.infer("types", inputs).get_response()
        self.assertEqual({entry.name: part for entry, part in zip(result.outputs, result.raw_output_contents)},
                         {f"y_{name}": to_bytes(array) for name, array in values.items()})

    def test_layouts_and_metadata(self):
        client = self.server.client()
        self.assertTrue(client.is_server_live())
        self.assertEqual(client.get_server_metadata()["name"], "redfuser")
        self.assertEqual(client.get_model_metadata("numbered")["versions"], ["12"])
        self.assertTrue(client.is_model_ready("numbered", "12"))
        self.assertFalse(client.is_model_ready("numbered", "3"))
        self.assertEqual(client.get_model_metadata("affine")["inputs"],
                         [{"name": "x", "datatype": "FP32", "shape": [-1, 256]}])
        self.assertEqual(client.get_model_config("bert")["max_batch_size"], 16)
        x = np.ones([2, 256], np.float32)
        found = client.infer("numbered", tensors({"x": x}, tritonclient.http)).as_numpy("y")
        np.testing.assert_array_equal(found, 24 * x)

    def test_chosen_outputs_and_empty_rows(self):
        client = self.server.client()
        x = np.ones([0, 256], np.float32)
        wanted = [tritonclient.http.InferRequestedOutput("y", binary_data=True)]
        result = client.infer("affine", tensors({"x": x}, tritonclient.http), outputs=wanted, request_id="a")
        self.assertEqual(result.get_response()["id"], "a")
        self.assertEqual(result.as_numpy("y").shape, (0, 256))

    def test_the_example_runs(self):
        for model, part in (("bert", "out FP32[4, 4, 64]"), ("affine", "y FP32[4, 256]")):
            done = subprocess.run([sys.executable, EXAMPLE, f"http://127.0.0.1:{self.server.http}", model],
                                  check=True, capture_output=True, text=True)
            self.assertIn(part, done.stdout)
