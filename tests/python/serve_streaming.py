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


def events_of(server, body):
    """Yields the events of a stream as they come. Closing it closes the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)
    try:
        connection.request("POST", "/v2/models/llama/generate_stream", json.dumps(body))
        answer = connection.getresponse()
        if (answer.status, answer.headers["content-type"].split(";")[0]) != (200, "text/event-stream"):
            raise AssertionError(answer.read())
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
    finally:
        connection.close()


class Streaming(unittest.TestCase):
    server = None

    def test_tokens_are_those_of_the_exporter(self):
        wanted = np.reshape(TOKENS, [1, -1]).tolist()
        body = {"input_ids": PROMPT, "parameters": {"max_tokens": len(wanted[0])}}
        status, answer = self.server.ask("/v2/models/llama/generate", json.dumps(body).encode())
        self.assertEqual((status, answer), (200, {"model_name": "llama", "model_version": "1", "tokens": wanted}))
        events = list(events_of(self.server, body))
        self.assertEqual([event["token"] for event in events], wanted[0])
        self.assertEqual(events[0], {"model_name": "llama", "model_version": "1", "row": 0, "token": wanted[0][0]})
        padded = {**{name: ids.tolist() for name, ids in PADDED.items()},
                  "parameters": {"max_tokens": PADDED_TOKENS.shape[1]}}
        _, answer = self.server.ask("/v2/models/llama/generate", json.dumps(padded).encode())
        self.assertEqual(answer["tokens"], PADDED_TOKENS.tolist())

    def test_a_client_that_leaves_ends_the_generation(self):
        events = events_of(self.server, {"input_ids": PROMPT, "parameters": {"max_tokens": 1_000_000}})
        next(events)
        events.close()
        # The session's turn is free again.
        body = {"input_ids": PROMPT, "parameters": {"max_tokens": 2}}
        self.assertEqual(len(list(events_of(self.server, body))), 2)

    def test_refusals_before_the_first_token_have_a_status(self):
        for route in ("generate", "generate_stream"):
            for model, body, status, part in REFUSED:
                with self.subTest(route=route, body=body):
                    found, answer = self.server.ask(f"/v2/models/{model}/{route}", json.dumps(body).encode())
                    self.assertEqual(found, status, answer)
                    self.assertIn(part, answer["error"])
