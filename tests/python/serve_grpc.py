"""The gRPC service, by Triton's client."""

import concurrent.futures
import queue
import unittest

import numpy as np
import tritonclient.grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc
from tritonclient.utils import InferenceServerException

import redfuser
from serve_inference import TOLERANCE, drawn
from serve_server import tensors
from serve_streaming import PROMPT, TOKENS

X = np.ones([1, 256], np.float32)


class Grpc(unittest.TestCase):
    server = None

    @classmethod
    def setUpClass(cls):
        cls.client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{cls.server.grpc}")

    def test_results_equal_a_direct_session(self):
        direct = redfuser.Session(self.server.folder / "bert" / "model.onnx", device="cpu")
        cases = [drawn(seed) for seed in range(16)]

        def run(inputs):
            return self.client.infer("bert", tensors(inputs, tritonclient.grpc)).as_numpy("out")

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for inputs, found in zip(cases, pool.map(run, cases)):
                np.testing.assert_allclose(found, np.array(direct.run(inputs)["out"]), **TOLERANCE)

    def test_typed_contents(self):
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self.client._channel)
        request = pb.ModelInferRequest(model_name="affine", id="8")
        entry = request.inputs.add(name="x", datatype="FP32", shape=[1, 256])
        entry.contents.fp32_contents.extend([1.0] * 256)
        answer = stub.ModelInfer(request)
        self.assertEqual((answer.id, answer.model_version, answer.outputs[0].datatype), ("8", "1", "FP32"))
        np.testing.assert_array_equal(np.frombuffer(answer.raw_output_contents[0], np.float32), np.full(256, 2))

    def test_health_metadata_and_repository(self):
        self.assertTrue(self.client.is_server_live())
        self.assertFalse(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("affine"))
        self.assertFalse(self.client.is_model_ready("damaged"))
        self.assertEqual(self.client.get_server_metadata().name, "redfuser")
        metadata = self.client.get_model_metadata("numbered")
        self.assertEqual((list(metadata.versions), list(metadata.inputs[0].shape)), (["12"], [-1, 256]))
        config = self.client.get_model_config("bert").config
        self.assertEqual((config.max_batch_size, list(config.input[0].dims)), (16, [-1]))
        index = {model.name: model.state for model in self.client.get_model_repository_index().models}
        self.assertEqual((index["affine"], index["damaged"]), ("READY", "UNAVAILABLE"))
        self.client.load_model("affine")

    def test_refusals_have_a_code_and_the_cause(self):
        wide = np.zeros([2048, 256], np.float32)
        for model, inputs, code, part in (("affine", {}, "INVALID_ARGUMENT", 'input "x" is missing'),
                                          ("affine", {"x": X.astype(np.float64)}, "INVALID_ARGUMENT", "float64"),
                                          ("affine", {"x": wide}, "RESOURCE_EXHAUSTED", "bytes"),
                                          ("afine", {"x": X}, "NOT_FOUND", 'did you mean "affine"?'),
                                          ("damaged", {"x": X}, "UNAVAILABLE", "damaged")):
            with self.subTest(model=model, part=part), self.assertRaises(InferenceServerException) as raised:
                self.client.infer(model, tensors(inputs, tritonclient.grpc))
            self.assertIn(code, raised.exception.status())
            self.assertIn(part, raised.exception.message())
        with self.assertRaisesRegex(InferenceServerException, "damaged"):
            self.client.load_model("damaged")

    def test_streams(self):
        found = queue.Queue()
        client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.server.grpc}")
        client.start_stream(lambda result, error: found.put((result, error)))
        tokens = np.reshape(TOKENS, [-1]).tolist()
        client.async_stream_infer("llama", tensors({"input_ids": np.array(PROMPT)}, tritonclient.grpc),
                                  parameters={"max_tokens": len(tokens)})
        for token in tokens:
            result, error = found.get(timeout=60)
            self.assertIsNone(error)
            self.assertEqual((result.as_numpy("row").item(), result.as_numpy("token").item()), (0, token))
        client.async_stream_infer("llama", tensors({"input_ids": np.array(PROMPT)}, tritonclient.grpc),
                                  parameters={"max_token": 3})
        self.assertIn('did you mean "max_tokens"?', str(found.get(timeout=60)[1]))
        client.async_stream_infer("affine", tensors({"x": X}, tritonclient.grpc))
        np.testing.assert_array_equal(found.get(timeout=60)[0].as_numpy("y"), 2 * X)
        client.stop_stream()
