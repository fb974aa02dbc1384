"""Tokens of a decoder, at once and as server-sent events."""

import http.client
import json
import pathlib
import unittest

import numpy as np

LLAMA = pathlib.Path(__file__).resolve().parents[2] / "models" / "decoders" / "llama"
PROMPT, TOKENS = np.load(LLAMA / "prompt1.npy").tolist(), np.load(LLAMA / "tokens1.npy").tolist()
PADDED, PADDED_TOKENS = dict(np.load(LLAMA / "prompt3.npz")), np.load(LLAMA / "tokens3.npy")
REFUSED = [
    ("llama", {}, 400, "no input_ids"),
    ("llama", {"input_ids": PROMPT, "promt": 1}, 400, "promt"),
    ("llama", {"input_ids": PROMPT, "parameters": {"max_token": 3}}, 400, 'did you mean "max_tokens"?'),
    ("llama", {"input_ids": PROMPT, "parameters": {"max_tokens": "3"}}, 400, "max_tokens"),
    ("llama", {"input_ids": PROMPT, "parameters": {"max_tokens": 1 << 70}}, 400, "out of range"),
    ("llama", {"input_ids": PROMPT, "parameters": {"top_p": 2}}, 400, "top"),
    ("llama", {"input_ids": "text"}, 400, "prompt"),
    ("llama", {"input_ids": [[1], [2, 3]]}, 400, "shape"),
    ("affine", {"input_ids": PROMPT}, 400, "not a decoder"),
    ("lama", {"input_ids": PROMPT}, 404, 'did you mean "llama"?'),
]


class Streaming(unittest.TestCase):
    server = None

    def events(self, body, most=None):
        """Of a stream, of which no more are read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http, timeout=60)
        connection.request("POST", "/v2/models/llama/generate_stream", json.dumps(body))
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.headers["content-type"].split(";")[0]), (200, "text/event-stream"))
        found = []
        while (line := answer.readline()) and (most is None or len(found) < most):
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
        connection.close()
        return found

    def test_tokens_are_those_of_the_exporter(self):
        wanted = np.reshape(TOKENS, [1, -1]).tolist()
        body = {"input_ids": PROMPT, "parameters": {"max_tokens": len(wanted[0])}}
        status, answer = self.server.ask("/v2/models/llama/generate", json.dumps(body).encode())
        self.assertEqual((status, answer), (200, {"model_name": "llama", "model_version": "1", "tokens": wanted}))
        events = self.events(body)
        self.assertEqual([event["token"] for event in events], wanted[0])
        self.assertEqual(events[0], {"model_name": "llama", "model_version": "1", "row": 0, "token": wanted[0][0]})
        padded = {**{name: ids.tolist() for name, ids in PADDED.items()},
                  "parameters": {"max_tokens": PADDED_TOKENS.shape[1]}}
        _, answer = self.server.ask("/v2/models/llama/generate", json.dumps(padded).encode())
        self.assertEqual(answer["tokens"], PADDED_TOKENS.tolist())

    def test_a_client_that_leaves_ends_the_generation(self):
        self.assertEqual(len(self.events({"input_ids": PROMPT, "parameters": {"max_tokens": 1_000_000}}, 3)), 3)
        # The session's turn is free again.
        self.assertEqual(len(self.events({"input_ids": PROMPT, "parameters": {"max_tokens": 2}})), 2)

    def test_refusals_before_the_first_token_have_a_status(self):
        for route in ("generate", "generate_stream"):
            for model, body, status, part in REFUSED:
                with self.subTest(route=route, body=body):
                    found, answer = self.server.ask(f"/v2/models/{model}/{route}", json.dumps(body).encode())
                    self.assertEqual(found, status, answer)
                    self.assertIn(part, answer["error"])
