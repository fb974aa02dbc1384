"""Serving: a folder of models behind the Open Inference (v2) protocol, as applications of Ray Serve.

    redfuser-serve DIR                           # on one machine; docs/serving.md has the rest

    from redfuser import serve
    serve.deploy("DIR")                          # the same from a program that started Ray
    ds.map_batches(serve.Predictor, fn_constructor_kwargs={"model": "model.onnx"})  # Ray Data

Queues, batching, replicas, autoscaling and both transports are Ray's. It takes the extra redfuser[serve].
"""

from .._core import UserError

try:
    import ray.serve  # noqa: F401
except ImportError as _error:
    raise UserError(f"redfuser.serve needs Ray Serve: pip install 'redfuser[serve]' ({_error})") from None

from .applications import deploy, ingress, model
from .predictor import Predictor

__all__ = ["Predictor", "deploy", "ingress", "model"]
