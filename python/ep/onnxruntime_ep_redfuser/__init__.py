"""RedFuser's execution providers for ONNX Runtime: the library's path and the providers' names.

    import onnxruntime
    import onnxruntime_ep_redfuser as redfuser_ep

    onnxruntime.register_execution_provider_library(redfuser_ep.get_ep_name(), redfuser_ep.get_library_path())
    session = onnxruntime.InferenceSession("model.onnx", providers=[redfuser_ep.get_ep_name(), "CPUExecutionProvider"])
"""

import importlib.metadata
import pathlib

__all__ = ["get_cuda_ep_name", "get_ep_name", "get_ep_names", "get_library_path"]
__version__ = importlib.metadata.version("onnxruntime-ep-redfuser")


def get_library_path() -> str:
    """The path of the library, for onnxruntime.register_execution_provider_library."""
    return str(pathlib.Path(__file__).resolve().with_name("libredfuser_ep.so"))


def get_ep_name() -> str:
    """The name by which ONNX Runtime knows the provider."""
    return "RedFuserExecutionProvider"


def get_cuda_ep_name() -> str:
    """The name of the provider whose tensors are in a GPU's memory; ONNX Runtime has it from 1.24 on, where there is one."""
    return "RedFuserCudaExecutionProvider"


def get_ep_names() -> list[str]:
    """The names of all providers in the library."""
    return [get_ep_name(), get_cuda_ep_name()]
