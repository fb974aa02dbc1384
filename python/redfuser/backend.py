"""ONNX's backend interface: onnx.backend.test.BackendTest(redfuser.backend, __name__) runs ONNX's tests against it."""

from __future__ import annotations

import collections
import typing

import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, DeviceType
from onnx.backend.base import Device as OnnxDevice

from ._core import UserError
from .inference import InferenceSession, get_device
from .programs import load

DEVICES = {DeviceType.CPU: "cpu", DeviceType.CUDA: "cuda"}


def device_named(device: str) -> str:
    """The Session's device of ONNX's "CPU", "CUDA" or "CUDA:0"."""
    wanted = OnnxDevice(device)
    if wanted.type not in DEVICES or wanted.device_id != 0:
        raise UserError(f'the backend runs on CPU and CUDA:0, not on "{device}"')
    return DEVICES[wanted.type]


class RedfuserRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session
        self._names = [info.name for info in session.session.inputs]
        names = [info.name for info in session.session.outputs]
        self._result: typing.Any = collections.namedtuple("Outputs", names, rename=True)  # type: ignore[misc]

    def run(self, inputs: typing.Any, **kwargs: typing.Any) -> tuple[typing.Any, ...]:
        """The outputs in the model's order. Inputs are a list in its order, a dict, or the only input."""
        if not isinstance(inputs, (list, tuple, dict)):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            if len(inputs) > len(self._names):
                raise UserError(f"{len(inputs)} inputs are given; the model takes {len(self._names)}")
            inputs = dict(zip(self._names, inputs))
        return self._result(*self.session.run(None, inputs))


class RedfuserBackend(Backend):
    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: typing.Any) -> bool:
        """Whether the model can be read and planned for the device."""
        try:
            cls.prepare(model, device, **kwargs)
        except UserError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: typing.Any) -> RedfuserRep:
        """Options are those of InferenceSession."""
        return RedfuserRep(InferenceSession(load(model), providers=[device_named(device)], **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: typing.Any, device: str = "CPU",
                  **kwargs: typing.Any) -> tuple[typing.Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: typing.Any, device: str = "CPU",
                 outputs_info: typing.Any = None, **kwargs: typing.Any) -> tuple[typing.Any, ...]:
        """Runs one node on arrays. Outputs without outputs_info have the types that ONNX infers."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in node.input if name]
        arrays = dict(zip(names, inputs))
        declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                    for name, array in arrays.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        if outputs_info is not None:
            results = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info)]
        graph = helper.make_graph([node], "node", declared, results)
        opset = kwargs.pop("opset_version", None) or onnx.defs.onnx_opset_version()
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        try:
            return device_named(device) == "cpu" or get_device() == "GPU"
        except UserError:
            return False


is_compatible = RedfuserBackend.is_compatible
prepare = RedfuserBackend.prepare
run_model = RedfuserBackend.run_model
run_node = RedfuserBackend.run_node
supports_device = RedfuserBackend.supports_device
