"""OrtValue and IOBinding, with the interfaces of ONNX Runtime's."""

from __future__ import annotations

import typing

import numpy as np

from . import _core
from ._core import Tensor, UserError
from .providers import did_you_mean
from .sessions import Session
from .tensors import as_tensor, element_type_of, numpy_dtype, to_array, to_numpy, type_name

if typing.TYPE_CHECKING:
    from .inference import InferenceSession


def element_name(element_type: typing.Any) -> str:
    """The element type of a NumPy dtype or type, or of a number of onnx.TensorProto.DataType."""
    if isinstance(element_type, int):
        return element_type_of(element_type)
    return as_tensor(np.empty(0, element_type)).dtype


class OrtValue:
    """A tensor. One for a GPU is copied there at its first use by a session."""

    def __init__(self, tensor: Tensor, device: str | None = None) -> None:
        self._tensor = tensor
        self._device = device or tensor.device

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """A copy of the array. Devices have one vendor each, so `vendor_id` has no effect."""
        if device_type not in ("cpu", "cuda") or device_id != 0:
            raise UserError(f"tensors lie on cpu or on cuda 0, not on {device_type} {device_id}")
        return OrtValue(as_tensor(np.array(numpy_obj)), device_type)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """The array's memory, in place, as elements of another type of as many bytes."""
        dtype = element_type_of(onnx_element_type)
        values = np.ascontiguousarray(data)
        if numpy_dtype(dtype).itemsize != values.itemsize:
            raise UserError(f"elements of {dtype} have another size than those of {values.dtype}")
        address, read_only = values.__array_interface__["data"]
        return OrtValue(Tensor.from_memory(address, dtype, values.shape, values, read_only))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: typing.Sequence[int], element_type: typing.Any,
                                     device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        dtype = numpy_dtype(element_name(element_type))
        return OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), device_type, device_id)

    @staticmethod
    def from_dlpack(value: typing.Any) -> OrtValue:
        return OrtValue(as_tensor(value))

    def numpy(self) -> typing.Any:
        return to_numpy(self._tensor)

    def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> np.ndarray:
        return to_array(self._tensor, dtype, copy)

    def update_inplace(self, data: typing.Any) -> None:
        """Copies an array of the same type and shape into the value."""
        if self._tensor.device != "cpu":
            raise UserError("update_inplace writes to host memory only")
        self._tensor.assign(as_tensor(data))

    def shape(self) -> list[int]:
        return list(self._tensor.shape)

    def element_type_name(self) -> str:
        return self._tensor.dtype

    def element_type(self) -> int:
        """The number in onnx.TensorProto.DataType."""
        return _core.onnx_type(self._tensor.dtype)

    def data_type(self) -> str:
        return type_name(self._tensor.dtype)

    def device_name(self) -> str:
        return self._device

    def data_ptr(self) -> int:
        return self._tensor.data_ptr

    def is_tensor(self) -> bool:
        return self._tensor.dtype not in ("sequence", "optional")

    def is_tensor_sequence(self) -> bool:
        return self._tensor.dtype == "sequence"

    def is_sparse_tensor(self) -> bool:
        return False

    def tensor_size_in_bytes(self) -> int:
        return self._tensor.nbytes

    def has_value(self) -> bool:
        return self._tensor.dtype != "optional" or bool(self._tensor.elements())

    def __dlpack__(self, **options: typing.Any) -> typing.Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def _on(self, session: Session) -> Tensor:
        """The tensor where it is meant to be."""
        if self._device == "cuda" and self._tensor.device == "cpu" and session.on_gpu:
            self._tensor = session.to_device(self._tensor)
        return self._tensor


class IOBinding:
    """Inputs and outputs of the next runs, on the host or the GPU."""

    def __init__(self, session: InferenceSession) -> None:
        self._session: Session = session.session
        self._inputs: dict[str, Tensor] = {}
        self._targets: dict[str, Tensor | str] = {}  # memory, or the device of a new output
        self._outputs: dict[str, Tensor] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: typing.Any) -> None:
        self._inputs[self._named("input", name)] = as_tensor(arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[self._named("input", name)] = ortvalue._on(self._session)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: typing.Any,
                   shape: typing.Sequence[int], buffer_ptr: int) -> None:
        """The caller's memory, which must stay valid during the runs."""
        self._inputs[self._named("input", name)] = self._at(name, device_type, element_type, shape, buffer_ptr)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: typing.Any = None,
                    shape: typing.Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """The caller's memory; without a pointer new memory on that device for each run."""
        self._named("output", name)
        if buffer_ptr is None:
            self._targets[name] = device_type
        else:
            self._targets[name] = self._at(name, device_type, element_type, shape or [], buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._targets[self._named("output", name)] = ortvalue._on(self._session)

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._targets.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to do: a run waits for its inputs."""

    def synchronize_outputs(self) -> None:
        """Nothing to do: a run is over when it returns."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return [OrtValue(self._outputs[name]) for name in self._targets]

    def copy_outputs_to_cpu(self) -> list[typing.Any]:
        return [to_numpy(self._session.to_host(self._outputs[name])) for name in self._targets]

    def _named(self, role: str, name: str) -> str:
        """UserError for a name that no input or output has."""
        program = self._session.program
        infos = [*program.inputs, *program.model.overridable] if role == "input" else program.outputs
        names = [info.name for info in infos]
        if name not in names:
            raise UserError(f'the model has no {role} "{name}"{did_you_mean(name, names)}')
        return name

    def _at(self, name: str, device_type: str, element_type: typing.Any, shape: typing.Sequence[int],
            pointer: int) -> Tensor:
        make = Tensor.from_memory if device_type == "cpu" else Tensor.from_device_memory
        if device_type not in ("cpu", "cuda"):
            raise UserError(f'"{name}": tensors lie on cpu or cuda, not on {device_type}')
        return make(pointer, element_name(element_type), list(shape), None)

    def _run(self, control: _core.RunControl | None = None) -> None:
        into = {name: target for name, target in self._targets.items() if isinstance(target, Tensor)}
        on_gpu = [name for name, target in self._targets.items() if target == "cuda"]
        if on_gpu and not self._session.on_gpu:
            raise UserError(f'output "{on_gpu[0]}" is bound to cuda, but the session runs on {self._session.device}')
        inputs = dict(self._inputs)
        if on_gpu and inputs and all(tensor.device == "cpu" for tensor in inputs.values()):
            name = next(iter(inputs))
            inputs[name] = self._session.to_device(inputs[name])
        outputs = self._session._run(inputs, into, control=control)
        for name, target in self._targets.items():
            if target == "cpu":
                outputs[name] = self._session.to_host(outputs[name])
        self._outputs = outputs
