"""redfuser-serve: serves a folder of models on this machine, or in a cluster that runs. Without the extra "serve" it says
so."""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import threading
import typing

from ._core import VERSION, Error


# Settings of Ray unless the caller has some. Serve's log of requests is in Ray's log files. On a busy machine a proxy
# takes longer to start than the 5 seconds after which Ray ends it, and the start with it. Ray's workers give way to
# other processes (niceness 15), as those of a server should not.
ENVIRONMENT = {"RAY_SERVE_LOG_TO_STDERR": "0", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60", "RAY_worker_niceness": "0"}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="redfuser-serve", description="Serves a folder of ONNX models by Ray Serve, "
                                   "over the Open Inference protocol.")
    made.add_argument("folder", metavar="DIR", help="NAME.onnx, NAME/model.onnx or NAME/VERSION/model.onnx")
    made.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    made.add_argument("--http-port", type=int, default=8000, metavar="N", help="REST (%(default)s)")
    made.add_argument("--grpc-port", type=int, default=0, metavar="N",
                      help="gRPC, on every address of the machine, as Ray has it (%(default)s: none)")
    made.add_argument("--metrics-port", type=int, default=8002, metavar="N",
                      help="Prometheus, of a Ray that this starts (%(default)s)")
    made.add_argument("--reload", type=float, default=2.0, metavar="SECONDS",
                      help="how often the folder is looked at (%(default)s; 0: never)")
    made.add_argument("--max-request-bytes", type=int, default=64 << 20, metavar="N", help="of a request (%(default)s)")
    made.add_argument("--routes", type=int, default=1, metavar="N",
                      help="processes that forward the requests of all models (%(default)s)")
    made.add_argument("--address", metavar="ADDRESS", help="a Ray cluster that runs, such as auto; else one is started")
    made.add_argument("--num-cpus", type=int, metavar="N", help="of a Ray that this starts (all cores)")
    made.add_argument("--object-store-bytes", type=int, default=1 << 30, metavar="N",
                      help="memory for large tensors between processes, of a Ray that this starts (%(default)s)")
    made.add_argument("--version", action="version", version=f"redfuser-serve {VERSION}")
    return made


def start_ray(options: argparse.Namespace) -> None:
    import logging

    import ray
    from ray import serve
    from ray.serve.config import HTTPOptions, gRPCOptions

    if options.address:
        ray.init(address=options.address, logging_level=logging.WARNING)
    else:
        # Whatever cluster there is on the machine.
        ray.init(address="local", num_cpus=options.num_cpus, object_store_memory=options.object_store_bytes,
                 include_dashboard=False, logging_level=logging.WARNING, _metrics_export_port=options.metrics_port)
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    methods = ["redfuser.serve.grpc_service.add_to_server"] if options.grpc_port else []
    serve.start(http_options=HTTPOptions(host=options.host, port=options.http_port),
                grpc_options=gRPCOptions(port=options.grpc_port, grpc_servicer_functions=methods))


def told(problems: typing.Mapping[str, str | None]) -> None:
    for name, problem in problems.items():
        if problem is not None:
            print(f'redfuser-serve: model "{name}" is not served: {problem}', file=sys.stderr, flush=True)


def followed(watch: typing.Any, seconds: float, ended: threading.Event) -> None:
    """Serves what the folder has until the event is set; 0 seconds: what it had."""
    while not ended.wait(seconds or None):
        try:
            told(watch.follow())
        except (Error, OSError) as error:  # the folder cannot be read now
            print(f"redfuser-serve: {error}", file=sys.stderr, flush=True)


def main(arguments: typing.Sequence[str] | None = None) -> int:
    try:
        return serve_folder(parser().parse_args(arguments))
    except KeyboardInterrupt:  # before the server is ready
        return 130


def serve_folder(options: argparse.Namespace) -> int:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray_errors: tuple[type[Exception], ...] = (RuntimeError,)
    try:
        from .serve import deploy  # without the extra "serve" this says so
        from ray.exceptions import RayError
        from .serve.watch import Watch

        ray_errors = (RuntimeError, RayError)
        if not pathlib.Path(options.folder).is_dir():
            raise ValueError(f"{options.folder} is not a folder")
        start_ray(options)
        watch = Watch(options.folder)
        told(deploy(options.folder, request_bytes=options.max_request_bytes, replicas=options.routes))
    except (Error, ValueError, ConnectionError) as error:
        print(f"redfuser-serve: {error}", file=sys.stderr)
        return 2
    except ray_errors as error:  # of a process of Ray, such as for a port that is in use: its last line is the cause
        print(f"redfuser-serve: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
        return 2
    print(f"redfuser-serve: ready at http://{options.host}:{options.http_port}", flush=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    followed(watch, options.reload, ended)
    return 0


if __name__ == "__main__":
    sys.exit(main())
