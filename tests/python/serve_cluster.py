"""A Ray cluster that runs on the machine before redfuser-serve starts, which takes no part in it."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import numpy as np
import tritonclient.http

from serve_server import START_S, Server, tensors, write_affine


class OtherCluster:
    """A head node without processors. Ray leaves its address in the folder, where every Ray of the environment RAY_TMPDIR
    looks for a cluster to join."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        os.environ["RAY_TMPDIR"] = str(self.folder)
        self.log = open(self.folder / "cluster.log", "w")
        self.process = subprocess.Popen(
            ["ray", "start", "--head", "--block", "--port=0", "--num-cpus=0", "--include-dashboard=false",
             "--object-store-memory=100000000"], stdout=self.log, stderr=subprocess.STDOUT)
        end = time.monotonic() + START_S
        while not self.address():
            if time.monotonic() > end or not self.runs():
                self.close()
                raise AssertionError(f"Ray does not start:\n{(self.folder / 'cluster.log').read_text()}")
            time.sleep(0.1)

    def address(self):
        """Where Ray looks for it; empty before it runs."""
        found = list(self.folder.rglob("ray_current_cluster"))
        return found[0].read_text().strip() if found else ""

    def runs(self):
        return self.process.poll() is None

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Beside(unittest.TestCase):
    cluster = server = None

    def test_the_server_has_a_ray_of_its_own(self):
        self.assertTrue(self.cluster.runs())
        replicas = self.server.replicas("affine")
        self.assertTrue(replicas)
        for replica in replicas:
            node = pathlib.Path(f"/proc/{replica}/stat").read_text().rsplit(")", 1)[1].split()[1]
            command = pathlib.Path(f"/proc/{node}/cmdline").read_bytes().decode().split("\0")
            clusters = [argument for argument in command if argument.startswith("--gcs-address=")]
            self.assertEqual(len(clusters), 1)
            self.assertNotEqual(clusters[0], f"--gcs-address={self.cluster.address()}")

    def test_a_server_may_join_it(self):
        with tempfile.TemporaryDirectory(prefix="redfuser-") as temporary:
            folder = pathlib.Path(temporary, "models")
            write_affine(folder / "joined.onnx", 2)
            with contextlib.closing(Server(folder, "--address", "auto")) as server:
                x = np.ones((1, 256), np.float32)
                client = server.client()
                found = client.infer("joined", tensors({"x": x}, tritonclient.http)).as_numpy("y")
                np.testing.assert_array_equal(found, 2 * x + 2)
        # The applications outlive the command.
        found = client.infer("joined", tensors({"x": x}, tritonclient.http)).as_numpy("y")
        np.testing.assert_array_equal(found, 2 * x + 2)
