"""A replica that is killed under load costs no request and no token."""

import os
import signal
import threading
import unittest

from serve_reload import Load
from serve_streaming import PROMPT, events_of

STREAMED = 400


class Failures(unittest.TestCase):
    server = None

    def kill(self, model):
        """A replica of the model, as the kernel ends a process that has taken too much memory."""
        process = self.server.replicas(model)[0]
        os.kill(process, signal.SIGKILL)
        return process

    def test_a_killed_replica_loses_no_request(self):
        self.assertEqual(len(self.server.replicas("pair")), 2)
        with Load(self.server, "pair", threads=16) as load:
            for _ in range(2):
                killed, answered = self.kill("pair"), len(load.seen)
                self.server.wait(lambda: len(load.seen) > answered + 200)
                self.server.wait(lambda: len(set(self.server.replicas("pair")) - {killed}) == 2)
        self.assertEqual(load.failures, [])
        self.assertEqual(set(load.seen), {1.0})

    def test_a_killed_replica_loses_no_token(self):
        body = {"input_ids": PROMPT, "parameters": {"max_tokens": STREAMED, "top_k": 20, "seed": 7}}
        wanted = [event["token"] for event in events_of(self.server, body)]
        self.assertEqual(len(wanted), STREAMED)
        found = []
        started = threading.Event()

        def stream():
            for event in events_of(self.server, body):
                found.append(event)
                if len(found) == 20:
                    started.set()

        thread = threading.Thread(target=stream)
        thread.start()
        self.assertTrue(started.wait(60))
        self.kill("llama")
        self.assertLess(len(found), STREAMED, "the stream ended before the replica")
        thread.join(120)
        self.assertEqual([event.get("token", event) for event in found], wanted)
