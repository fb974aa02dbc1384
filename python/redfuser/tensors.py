"""Tensors from and to the arrays of other libraries, without copies where the memory allows it."""

from __future__ import annotations

import functools
import typing

import numpy as np

from ._core import Tensor, UserError, onnx_type

# Types that NumPy has not, as the package ml_dtypes names them; in memory each element has bytes of its own.
EXTENSION_TYPES = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn", "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2",
}
BY_EXTENSION = {theirs: ours for ours, theirs in EXTENSION_TYPES.items()}
# Their sign fills the byte; ml_dtypes leaves the upper bits 0.
SIGN_EXTENDED = ("int4", "int2")
CPU, CUDA_HOST = 1, 3  # DLPack's device types
DLPACK_VERSION = (1, 1)


def extension_dtype(name: str) -> np.dtype:
    """NumPy's dtype of one of EXTENSION_TYPES."""
    try:
        import ml_dtypes
    except ImportError:
        raise UserError(f"NumPy has no {name}: install the package ml_dtypes, or take the tensor by DLPack") from None
    return np.dtype(getattr(ml_dtypes, EXTENSION_TYPES[name]))


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of an element type."""
    if name == "string":
        return np.dtype(object)
    return extension_dtype(name) if name in EXTENSION_TYPES else np.dtype(name)


def type_name(name: str) -> str:
    """The type as ONNX and ONNX Runtime spell it: "tensor(float)"."""
    if name in ("sequence", "optional"):
        return name
    return f"tensor({dict(float32='float', float64='double', float8e8m0='float8e8m0fnu').get(name, name)})"


@functools.cache
def element_type(dtype: np.dtype) -> str:
    """The element type of a NumPy dtype. UserError for one that tensors do not have."""
    if dtype.name in BY_EXTENSION:
        return BY_EXTENSION[dtype.name]
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return dtype.name
    raise UserError(f"tensors have no elements of NumPy's dtype {dtype}")


@functools.cache
def _by_onnx_type() -> dict[int, str]:
    plain = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
             "float64", "string")
    return {onnx_type(name): name for name in (*plain, *EXTENSION_TYPES)}


def element_type_of(number: int) -> str:
    """The element type of a number in onnx.TensorProto.DataType. UserError for others."""
    if number not in _by_onnx_type():
        raise UserError(f"tensors have no elements of ONNX's type {number}")
    return _by_onnx_type()[number]


def text_of(value: typing.Any) -> str:
    """Of an element of an array of strings or objects. UserError for what is neither a text nor a number."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (str, int, float, np.generic)):
        return str(value)
    raise UserError(f"a tensor of strings has no elements of type {type(value).__name__}")


def from_numpy(array: np.ndarray) -> Tensor:
    """In place where the array is row-major, aligned and native; else a copy. Strings and signed types below 8
    bits are copied."""
    if array.dtype.kind in "OUS":
        return Tensor.strings(list(array.shape), [text_of(value) for value in array.ravel()])
    dtype = element_type(array.dtype)
    if dtype in SIGN_EXTENDED:
        array = array.astype(np.int8)
    elif not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    address, read_only = array.__array_interface__["data"]
    return Tensor.from_memory(address, dtype, array.shape, array, read_only)


def from_dlpack(value: typing.Any, stream: int | None = None) -> Tensor:
    """A tensor of another library, in place. On a GPU its producer makes `stream` wait for its work."""
    options = {} if value.__dlpack_device__()[0] in (CPU, CUDA_HOST) else {"stream": stream}
    try:
        capsule = value.__dlpack__(max_version=DLPACK_VERSION, **options)
    except TypeError:  # of a library before DLPack 1
        capsule = value.__dlpack__(**options)
    return Tensor.from_capsule(capsule)


def is_on_host(value: typing.Any) -> bool:
    return value.__dlpack_device__()[0] in (CPU, CUDA_HOST)


def as_tensor(value: typing.Any, dtype: str | None = None, stream: int | None = None) -> Tensor:
    """A tensor of what NumPy, torch, CuPy, JAX or any library with DLPack or the buffer protocol has.

    Numbers and lists of them get the element type `dtype`; lists become sequences where that is
    "sequence", and None an empty optional where it is "optional".
    """
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "_tensor") and isinstance(value._tensor, Tensor):
        return value._tensor
    if dtype == "sequence" and isinstance(value, (list, tuple)):
        return Tensor.sequence([as_tensor(element) for element in value])
    if dtype == "optional":
        inner = "sequence" if isinstance(value, (list, tuple)) else None
        return Tensor.optional(None if value is None else as_tensor(value, inner))
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        try:
            return from_dlpack(value, stream)
        except Exception as reason:
            # Host memory in another order, or of a type that the library does not export.
            if not is_on_host(value) or not hasattr(value, "__array__"):
                raise
            try:
                return from_numpy(np.asarray(value))
            except Exception:
                raise reason from None
    if type(value).__name__ == "PyCapsule":
        return Tensor.from_capsule(value)
    if value is None:
        raise UserError("None is not a tensor")
    wanted = None
    if dtype not in (None, "string") and not hasattr(value, "dtype") and isinstance(value, (int, float, list, tuple)):
        wanted = numpy_dtype(typing.cast(str, dtype))
    return from_numpy(np.asarray(value, dtype=wanted))


class _Memory:
    """Host memory of a tensor, which it keeps, for NumPy."""

    def __init__(self, tensor: Tensor, dtype: np.dtype) -> None:
        self.tensor = tensor
        self.__array_interface__ = {"version": 3, "shape": tensor.shape, "typestr": dtype.str,
                                    "data": (tensor.data_ptr, tensor.read_only)}


def to_numpy(tensor: Tensor) -> typing.Any:
    """A host tensor as an array over the same memory; a sequence as a list, an optional as its value or None."""
    if tensor.device != "cpu":
        raise UserError("the tensor lies on the GPU: copy it with Session.to_host, or take it by DLPack")
    if tensor.dtype == "sequence":
        return [to_numpy(element) for element in tensor.elements()]
    if tensor.dtype == "optional":
        return to_numpy(tensor.elements()[0]) if tensor.elements() else None
    if tensor.dtype == "string":
        return np.array(tensor.texts(), dtype=object).reshape(tensor.shape)
    dtype = numpy_dtype(tensor.dtype)
    if 0 in tensor.shape:
        return np.empty(tensor.shape, dtype)
    if tensor.dtype in SIGN_EXTENDED:
        return np.asarray(_Memory(tensor, np.dtype(np.int8))).astype(dtype)
    plain = np.dtype(f"u{dtype.itemsize}") if tensor.dtype in EXTENSION_TYPES else dtype
    return np.asarray(_Memory(tensor, plain)).view(dtype)


def to_array(tensor: Tensor, dtype: typing.Any = None, copy: bool | None = None) -> np.ndarray:
    """As NumPy asks for it: of this dtype, and by a copy (True), without one (False), or as needed."""
    array = to_numpy(tensor)
    if not isinstance(array, np.ndarray):
        raise UserError(f"{tensor!r} is not one array: use numpy()")
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise UserError(f"{tensor!r} becomes {dtype} only by a copy")
        return array.astype(dtype)
    return array.copy() if copy else array
