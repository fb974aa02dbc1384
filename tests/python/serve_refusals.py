"""Bad requests, bad models and bad options are answered with their cause."""

import json
import pathlib
import re
import subprocess
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "serving.md"
INFER = "/v2/models/affine/infer"
X = {"name": "x", "datatype": "FP32", "shape": [1, 256], "data": [0.5] * 256}
LIMIT = 1 << 20  # of a request's bytes, as the server is started


def body_with(**changes):
    return json.dumps({"inputs": [{**X, **changes}]}).encode()


BINARY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 256],
                                 "parameters": {"binary_data_size": 1024}}]}).encode()
LENGTH = "Inference-Header-Content-Length"
# Path, body, headers, status, and a part of the message.
REFUSED = [
    (INFER, b"{", {}, 400, "not JSON"),
    (INFER, b"[]", {}, 400, "not a JSON object"),
    (INFER, b"[" * 100_000, {}, 400, "not JSON"),
    (INFER, b'{"inptus": []}', {}, 400, 'did you mean "inputs"?'),
    (INFER, b'{"inputs": {}}', {}, 400, '"inputs" is not a list'),
    (INFER, b"{}", {}, 400, 'input "x" is missing'),
    (INFER, body_with(name=3), {}, 400, "input 0 has no name"),
    (INFER, body_with(name="z"), {}, 400, '"z"'),
    (INFER, json.dumps({"inputs": [X, X]}).encode(), {}, 400, "given twice"),
    (INFER, body_with(datatype="FP23"), {}, 400, 'did you mean "FP32"?'),
    (INFER, body_with(datatype="FP64"), {}, 400, "float64"),
    (INFER, body_with(datatype="INT8", data=[300] * 256), {}, 400, "INT8"),
    (INFER, body_with(datatype="INT64", data=[0.5] * 256), {}, 400, "another type"),
    (INFER, body_with(data=["a"] * 256), {}, 400, "another type"),
    (INFER, body_with(data=[[1], [1, 2]]), {}, 400, "FP32"),
    (INFER, body_with(shape=[2, 256]), {}, 400, "256 elements"),
    (INFER, body_with(shape=[1, -256]), {}, 400, "not a list of sizes"),
    (INFER, body_with(shape=[1, 128], data=[0.5] * 128), {}, 400, "256"),
    (INFER, body_with(shape=[256]), {}, 400, '"x"'),
    (INFER, json.dumps({"inputs": [X], "outputs": [{"name": "yy"}]}).encode(), {}, 400, 'did you mean "y"?'),
    (INFER, BINARY + b"0" * 1023, {LENGTH: str(len(BINARY))}, 400, "binary_data_size"),
    (INFER, BINARY + b"0" * 1025, {LENGTH: str(len(BINARY))}, 400, "1 bytes follow"),
    (INFER, BINARY, {LENGTH: "99999"}, 400, LENGTH),
    (INFER, BINARY.replace(b'"FP32"', b'"BYTES"') + b"\xff" * 1024, {LENGTH: str(len(BINARY) + 1)}, 400, "longer"),
    (INFER, b"x" * (LIMIT + 1), {}, 413, f"more than {LIMIT} bytes"),
    (INFER, b"x", {"Content-Encoding": "gzip"}, 415, "compressed"),
    ("/v2/models/afine/infer", b"{}", {}, 404, 'did you mean "affine"?'),
    ("/v2/models/affine/versions/9/infer", b"{}", {}, 404, "served in version 1"),
    ("/v2/nothing", b"{}", {}, 404, "/v2/nothing"),
    ("/v2/models/affine", b"{}", {}, 405, "Method Not Allowed"),
    ("/v2/models/damaged/infer", b"{}", {}, 503, "damaged"),
    ("/v2/models/typo/infer", b"{}", {}, 404, 'did you mean "max_rows"?'),
    ("/v2/models/device/infer", b"{}", {}, 503, "gpu9"),
    ("/v2/models/rows/infer", b"{}", {}, 503, "no symbolic first dimension in common"),
    ("/v2/models/pending/infer", b"{}", {}, 503, "no replica has started yet"),
    ("/v2/models/ray/infer", b"{}", {}, 404, "num_replicas"),
    ("/v2/repository/models/damaged/load", b"", {}, 400, "damaged"),
]


class Refusals(unittest.TestCase):
    server = None

    def test_answers_have_the_status_and_the_cause(self):
        for path, body, headers, status, part in REFUSED:
            with self.subTest(path=path, body=body[:80], part=part):
                found, answer = self.server.ask(path, body, headers)
                self.assertEqual(found, status, answer)
                self.assertIn(part, answer["error"])
        self.assertEqual(self.server.ask(INFER, body_with())[0], 200)

    def test_a_server_with_such_a_model_is_not_ready(self):
        self.assertFalse(self.server.client().is_server_ready())
        self.assertFalse(self.server.client().is_model_ready("damaged"))
        self.assertTrue(self.server.client().is_model_ready("affine"))
        index = {model["name"]: model for model in self.server.client().get_model_repository_index()}
        self.assertEqual(index["affine"]["state"], "READY")
        self.assertEqual(index["damaged"]["state"], "UNAVAILABLE")
        self.assertIn("damaged", index["damaged"]["reason"])

    def test_the_command_says_what_is_wrong(self):
        for arguments, part in ((["/nowhere"], "/nowhere is not a folder"), (["--hots", "h", "."], "--hots")):
            done = subprocess.run(["redfuser-serve", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)

    def test_the_document_has_the_options(self):
        done = subprocess.run(["redfuser-serve", "--help"], capture_output=True, text=True, check=True)
        options = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.stdout, re.MULTILINE))
        table = PAGE.read_text().partition("| option of `redfuser-serve`")[2].partition("\n\n")[0]
        self.assertEqual(set(re.findall(r"`(--[a-z-]+)`", table)), options)
