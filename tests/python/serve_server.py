"""A folder of models and a redfuser-serve that serves it, for the tests of serving."""

import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
import onnx
import tritonclient.http
from onnx import TensorProto, helper
from tritonclient.utils import np_to_triton_dtype

from redfuser.serve.datatypes import DATATYPES
from redfuser.tensors import numpy_dtype

START_S = 300  # on a busy machine


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write_affine(path, factor, external=False, rows="n"):
    """float[rows, 256] x => y = factor * x + factor: both constants are of the same version, or y shows it."""
    constants = [helper.make_tensor(name, TensorProto.FLOAT, [256], np.full(256, factor, np.float32).tobytes(), raw=True)
                 for name in ("a", "b")]
    nodes = [helper.make_node("Mul", ["x", "a"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 256]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "affine", values[:1], values[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)


def write_types(path):
    """Copies of an input of each type that the protocol has, each [n]."""
    types = {datatype: helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype(element)))
             for datatype, element in DATATYPES.items()}
    nodes = [helper.make_node("Identity", [f"x_{name}"], [f"y_{name}"]) for name in types]
    values = [[helper.make_tensor_value_info(f"{side}_{name}", code, ["n"]) for name, code in types.items()]
              for side in "xy"]
    graph = helper.make_graph(nodes, "types", *values)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def tensors(arrays, kind, **options):
    """The arrays as inputs of a client of Triton; `kind` is its module."""
    made = []
    for name, array in arrays.items():
        made.append(kind.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        made[-1].set_data_from_numpy(array, **options)
    return made


class Server:
    """The running command, with ports of its own."""

    def __init__(self, folder, *options):
        self.folder = pathlib.Path(folder)
        self.http, self.grpc, self.metrics = (free_port() for _ in range(3))
        command = ["redfuser-serve", folder, "--http-port", self.http, "--grpc-port", self.grpc, "--metrics-port",
                   self.metrics, "--num-cpus", 2, "--object-store-bytes", 200_000_000, "--reload", 0.2, *options]
        # Ray's workers report figures so often, in milliseconds.
        environment = {**os.environ, "RAY_metrics_report_interval_ms": "1000", "PYTHONUNBUFFERED": "1",
                       "REDFUSER_TEST_SERVER": str(os.getpid())}
        self.log = open(self.folder.with_suffix(".log"), "w+")
        self.process = subprocess.Popen([str(part) for part in command], stdout=self.log, stderr=subprocess.STDOUT,
                                        env=environment)
        try:
            self.wait(lambda: "ready at" in self.output() or self.process.poll() is not None, START_S)
            if self.process.poll() is not None:
                raise AssertionError(f"redfuser-serve ended:\n{self.output()}")
        except AssertionError:
            self.close()
            raise

    def output(self):
        return pathlib.Path(self.log.name).read_text()

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s; redfuser-serve says:\n{self.output()}")
            time.sleep(0.05)

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def client(self, **options):
        return tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.http}", **options)

    def ask(self, path, body=None, headers=None, method=None):
        """The status and the JSON of an answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def problem(self, model):
        return self.ask(f"/v2/models/{model}")[1].get("problem")

    def replicas(self, model):
        """The processes of a model's replicas, by the titles that Ray gives them."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                title = (process / "cmdline").read_bytes().decode()
            except OSError:
                continue
            if f"ServeReplica:redfuser-model-{model}:" in title and self._is_ours(int(process.name)):
                found.append(int(process.name))
        return found

    def _is_ours(self, process):
        """Whether it is a process of this server's Ray, and not of another on the machine."""
        try:
            environment = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"REDFUSER_TEST_SERVER={os.getpid()}".encode() in environment
