"""RedFuser: optimises and runs ONNX models.

    import redfuser
    session = redfuser.InferenceSession("model.onnx")     # as in ONNX Runtime
    outputs = session.run(None, {"x": x})

    program = redfuser.compile(redfuser.load("model.onnx"))
    outputs = redfuser.Session(program, device="auto").run(x=x)

Errors are redfuser.UserError (the caller's fault; a ValueError too) or redfuser.InternalError
(RedFuser's; a RuntimeError too), both redfuser.Error, with the message of the C++ library.
"""

import pathlib

from . import _core
from ._core import VERSION as __version__
from ._core import Error, InternalError, Model, Tensor, UserError, ValueInfo
from .generator import Generation, Generator
from .inference import InferenceSession, NodeArg, get_all_providers, get_available_providers, get_device
from .ort_options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, ModelMetadata, RunOptions, SessionOptions,
                          disable_telemetry_events, enable_telemetry_events, preload_dlls, set_default_logger_severity,
                          set_default_logger_verbosity, set_global_thread_pool_sizes)
from .ort_values import IOBinding, OrtValue
from .programs import Program, compile, load, optimize
from .sessions import Session
from .tensors import as_tensor

for _error in (Error, UserError, InternalError):
    _error.__module__ = "redfuser"
# NVIDIA's wheels of this environment, where there are any.
_core.search_cuda_libraries(str(pathlib.Path(__file__).resolve().parent.parent))

__all__ = ["Error", "ExecutionMode", "ExecutionOrder", "Generation", "Generator", "GraphOptimizationLevel", "IOBinding",
           "InferenceSession", "InternalError", "Model", "ModelMetadata", "NodeArg", "OrtValue", "Program", "RunOptions",
           "Session", "SessionOptions", "Tensor", "UserError", "ValueInfo", "__version__", "as_tensor", "compile",
           "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
           "get_build_info", "get_device", "get_version_string", "has_collective_ops", "load", "optimize",
           "preload_dlls", "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes"]


def get_version_string() -> str:
    """RedFuser's version."""
    return __version__


def get_build_info() -> str:
    return f"RedFuser {__version__}"


def has_collective_ops() -> bool:
    """False: a session has one device."""
    return False
