"""Serving by Ray Serve, over the loopback, by the command redfuser-serve and the clients of Triton.

    tools/serve.sh tests/python/serve_test.py MODELS
"""

import contextlib
import pathlib
import shutil
import sys
import tempfile
import unittest

from serve_cluster import Beside, OtherCluster
from serve_data import Data
from serve_failures import Failures
from serve_grpc import Grpc
from serve_inference import Inference
from serve_refusals import LIMIT, Refusals
from serve_reload import Reload
from serve_server import Server, write_affine, write_types
from serve_streaming import LLAMA, Streaming

MODELS = pathlib.Path(sys.argv.pop(1)).resolve()


def fill(folder):
    """The models of all tests."""
    (folder / "bert").mkdir(parents=True)
    shutil.copy(MODELS / "bert.ts.eager" / "model.onnx", folder / "bert")
    (folder / "bert" / "redfuser.toml").write_text("[batching]\nmax_rows = 16\nwait_ms = 20\n")
    (folder / "llama").mkdir()
    shutil.copy(LLAMA / "model.onnx", folder / "llama")
    write_affine(folder / "affine.onnx", 1)
    write_types(folder / "types.onnx")
    for name in ("replaced", "weights", "broken", "truncated", "typo", "device", "pair", "pending", "ray"):
        write_affine(folder / name / "model.onnx", 1, external=name in ("weights", "truncated"))
    for version in (3, 12):
        write_affine(folder / "numbered" / str(version) / "model.onnx", version)
    (folder / "damaged").mkdir()
    (folder / "damaged" / "model.onnx").write_bytes(b"damaged")
    (folder / "typo" / "redfuser.toml").write_text("[batching]\nmax_row = 4\n")
    (folder / "device" / "redfuser.toml").write_text('[session]\ndevice = "gpu9"\n')
    (folder / "pair" / "redfuser.toml").write_text("[deployment]\nnum_replicas = 2\nhealth_check_period_s = 1\n")
    (folder / "pending" / "redfuser.toml").write_text("[deployment.ray_actor_options]\nnum_gpus = 64\n")
    (folder / "ray" / "redfuser.toml").write_text('[deployment]\nnum_replicas = "two"\n')
    write_affine(folder / "rows" / "model.onnx", 1, rows=4)
    (folder / "rows" / "redfuser.toml").write_text("[batching]\nmax_rows = 4\n")


def main():
    with tempfile.TemporaryDirectory(prefix="redfuser-") as temporary:
        folder = pathlib.Path(temporary, "models")
        fill(folder)
        with contextlib.closing(OtherCluster(temporary)) as Beside.cluster:
            with contextlib.closing(Server(folder, "--max-request-bytes", LIMIT)) as server:
                for case in (Beside, Data, Failures, Grpc, Inference, Refusals, Reload, Streaming):
                    case.server = server
                return 0 if unittest.main(exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
