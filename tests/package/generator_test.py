"""Generator: the decoder of models/decoders gives the tokens that PyTorch gave, in one call and token by token.

    python generator_test.py MODELS
"""

import pathlib
import subprocess
import sys
import threading
import unittest

import numpy as np

import redfuser

LLAMA = pathlib.Path(sys.argv.pop(1)).resolve() / "decoders" / "llama"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "stream_tokens.py"
PROMPT, TOKENS = np.load(LLAMA / "prompt1.npy"), np.load(LLAMA / "tokens1.npy")
PADDED, PADDED_TOKENS = np.load(LLAMA / "prompt3.npz"), np.load(LLAMA / "tokens3.npy")


class Generation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = redfuser.Session(LLAMA / "model.onnx", device="cpu")
        cls.generator = redfuser.Generator(cls.session)

    def test_tokens_are_those_of_the_exporter(self):
        count = TOKENS.shape[-1]
        for prompt in (PROMPT, PROMPT[0].tolist(), PROMPT.astype(np.int32)):
            result = self.generator.generate(prompt, max_tokens=count)
            self.assertEqual(result.tokens, TOKENS.reshape(1, -1).tolist())
        self.assertGreater(result.first_token_ms, 0)
        self.assertEqual(len(result.token_ms), count - 1)
        padded = self.generator.generate(PADDED["input_ids"], PADDED["attention_mask"], max_tokens=PADDED_TOKENS.shape[1])
        self.assertEqual(padded.tokens, PADDED_TOKENS.tolist())

    def test_callback_and_iterator_give_the_same(self):
        wanted = self.generator.generate(PROMPT, max_tokens=6).tokens[0]
        seen = []
        self.generator.generate(PROMPT, max_tokens=6, on_token=lambda row, token: seen.append((row, token)))
        self.assertEqual(seen, [(0, token) for token in wanted])
        self.assertEqual(list(self.generator.stream(PROMPT, max_tokens=6)), seen)
        ended = self.generator.generate(PROMPT, max_tokens=6, on_token=lambda row, token: token != wanted[2])
        self.assertEqual(ended.tokens, [wanted[:3]])

    def test_a_closed_iterator_ends_the_generation(self):
        before = threading.active_count()
        tokens = self.generator.stream(PROMPT, max_tokens=100_000)
        next(tokens)
        tokens.close()
        self.assertEqual(threading.active_count(), before)
        self.assertEqual(len(self.generator.generate(PROMPT, max_tokens=2).tokens[0]), 2)

    def test_options(self):
        draws = [self.generator.generate(PROMPT, max_tokens=12, top_k=20, temperature=2.0, seed=seed).tokens
                 for seed in (1, 1, 2)]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])
        greedy = self.generator.generate(PROMPT, max_tokens=8).tokens[0]
        stopped = self.generator.generate(PROMPT, max_tokens=8, stop=[greedy[3]]).tokens[0]
        self.assertEqual(stopped, greedy[:greedy.index(greedy[3]) + 1])
        self.assertEqual(self.generator.generate(PROMPT, max_tokens=8, prompt_chunk=2).tokens[0], greedy)

    def test_states(self):
        self.generator.generate(PROMPT, max_tokens=3)
        length = PROMPT.shape[1] + 2
        self.assertEqual(self.generator.length, length)
        past, present, axis = self.generator.states[0]
        self.assertEqual(self.generator.read(past).shape[axis], length)
        self.assertEqual(self.generator.read(present).shape, self.generator.read(past).shape)

    def test_the_example_runs(self):
        ids = [str(token) for token in PROMPT[0]]
        done = subprocess.run([sys.executable, EXAMPLE, LLAMA / "model.onnx", *ids], check=True, capture_output=True, text=True)
        self.assertEqual([int(token) for token in done.stdout.split()], self.generator.generate(PROMPT, max_tokens=16).tokens[0])

    def test_errors(self):
        for prompt, options, part in (([], {}, "prompt"), ([[1.5]], {}, "prompt"), ([1, 2], {"top_p": 2.0}, "top"),
                                      ([[1], [2, 3]], {}, ""), (PROMPT, {"max_tokens": -1}, "max_tokens")):
            with self.subTest(prompt=prompt, options=options), self.assertRaises(ValueError) as raised:
                self.generator.generate(prompt, **options)
            self.assertIn(part, str(raised.exception))
        with self.assertRaises(redfuser.UserError):
            list(self.generator.stream([[1.5]]))
        with self.assertRaisesRegex(redfuser.UserError, "callback"):
            self.generator.generate(PROMPT, on_token=lambda row, token: self.generator.generate(PROMPT))
        with self.assertRaisesRegex(KeyError, "mine"):
            self.generator.generate(PROMPT, on_token=lambda row, token: {}["mine"])
        with self.assertRaisesRegex(redfuser.UserError, "nowhere"):
            self.generator.read("nowhere")
        bert = LLAMA.parents[1] / "bert.ts.eager" / "model.onnx"
        with self.assertRaises(redfuser.UserError):
            redfuser.Generator(redfuser.Session(bert, device="cpu"))
        with self.assertRaisesRegex(redfuser.UserError, "nowhere"):
            redfuser.Generator(self.session, states=[("nowhere", "present.0.key")])


if __name__ == "__main__":
    unittest.main()
