"""The execution provider in the ONNX Runtime at hand, for the tests of this folder.

A test is called with the provider's library first: python NAME_test.py LIBRARY ...
"""

import pathlib
import sys

import onnx
import onnxruntime

NAME = "RedFuserExecutionProvider"
LIBRARY = str(pathlib.Path(sys.argv.pop(1)).resolve())
# ONNX Runtime 1.23 knows providers of libraries by their devices alone.
BY_NAME = tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 24)

onnxruntime.register_execution_provider_library(NAME, LIBRARY)


def devices():
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]


def quiet_options(entries=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    return options


def source_of(model):
    """Files and bytes as they are, models and graphs in ONNX's text syntax as bytes."""
    if isinstance(model, str) and model.startswith("g ("):
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20, "custom" : 1]> ' + model)
    return model.SerializeToString() if isinstance(model, onnx.ModelProto) else model


def session_of(model, provider_options=None, whole=False, options=None, fallback=False):
    """A session with RedFuser and the CPU; `whole`: with RedFuser alone, which must take every node."""
    options = options or quiet_options()
    own = provider_options or {}
    if whole:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if not BY_NAME:
        options.add_provider_for_devices(devices(), own)
        return onnxruntime.InferenceSession(source_of(model), options, enable_fallback=fallback)
    providers = [(NAME, own)] + ([] if whole else ["CPUExecutionProvider"])
    return onnxruntime.InferenceSession(source_of(model), options, providers=providers, enable_fallback=fallback)


def plain_session(model):
    """A session of ONNX Runtime's own."""
    return onnxruntime.InferenceSession(source_of(model), quiet_options(), providers=["CPUExecutionProvider"])
