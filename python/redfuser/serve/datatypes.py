"""Tensors of the Open Inference protocol: names of types, and bytes in row-major, little-endian order."""

from __future__ import annotations

import math
import struct
import typing

import numpy as np

from ..providers import did_you_mean
from ..tensors import element_type, numpy_dtype
from .errors import RequestError

# The protocol's name -> the element type.
DATATYPES = {"BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
             "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16",
             "BF16": "bfloat16", "FP32": "float32", "FP64": "float64", "BYTES": "string"}
BY_ELEMENT = {element: name for name, element in DATATYPES.items()}


def datatype_of(element: str) -> str:
    """The protocol's name of an element type; the type's own name, in capitals, where the protocol has none."""
    return BY_ELEMENT.get(element, element.upper())


def dtype_of(where: str, datatype: typing.Any) -> np.dtype:
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise RequestError(400, f"{where}: there is no datatype {datatype!r}{did_you_mean(str(datatype), DATATYPES)}")
    return numpy_dtype(DATATYPES[datatype])


def checked_shape(where: str, shape: typing.Any) -> list[int]:
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 48 for size in shape):
        raise RequestError(400, f"{where}: the shape is not a list of sizes")
    return shape


def from_values(where: str, datatype: typing.Any, shape: typing.Any, values: typing.Any) -> np.ndarray:
    """Of numbers or texts, nested or not."""
    dtype, sizes = dtype_of(where, datatype), checked_shape(where, shape)
    try:
        array = np.array(values, dtype=object if dtype.kind == "O" else None)
        if array.size != math.prod(sizes):
            raise ValueError(f"{array.size} elements for the shape {sizes}")
        allowed = {"O": "O", "b": "b", "i": "iu", "u": "iu"}.get(dtype.kind, "iuf")
        if array.size > 0 and array.dtype.kind not in allowed:
            raise ValueError("the elements are of another type")
        if dtype.kind == "O" and not all(isinstance(text, (str, bytes)) for text in array.flat):
            raise ValueError("the elements are not texts")
        # Out of range of the type is an error only where Python's integers are converted.
        exact = np.array(values, dtype=dtype) if dtype.kind in "iu" else array.astype(dtype)
        return exact.reshape(sizes)
    except (ValueError, TypeError, OverflowError) as error:
        raise RequestError(400, f"{where}, {datatype}: {error}") from None


def texts_of(where: str, raw: memoryview, count: int) -> np.ndarray:
    """Of BYTES: each element is its length, in 4 bytes, and itself."""
    texts, position = np.empty(count, dtype=object), 0
    for i in range(count):
        if position + 4 > len(raw):
            raise RequestError(400, f"{where}: {len(raw)} bytes hold {i} elements, not {count}")
        length = struct.unpack_from("<I", raw, position)[0]
        position += 4
        if position + length > len(raw):
            raise RequestError(400, f"{where}: element {i} is longer than the bytes")
        texts[i] = bytes(raw[position:position + length])
        position += length
    if position != len(raw):
        raise RequestError(400, f"{where}: {len(raw) - position} bytes follow the last element")
    return texts


def from_bytes(where: str, datatype: typing.Any, shape: typing.Any, raw: bytes | memoryview) -> np.ndarray:
    """In place, but for texts."""
    dtype, sizes = dtype_of(where, datatype), checked_shape(where, shape)
    count = math.prod(sizes)
    if dtype.kind == "O":
        # Each text has at least the bytes of its length.
        if count * 4 > len(raw):
            raise RequestError(400, f"{where}: {len(raw)} bytes for the shape {sizes}")
        return texts_of(where, memoryview(raw), count).reshape(sizes)
    if count * dtype.itemsize != len(raw):
        raise RequestError(400, f"{where}: {len(raw)} bytes for {datatype} of the shape {sizes}")
    return np.frombuffer(raw, dtype=dtype).reshape(sizes)


def array_datatype(name: str, array: np.ndarray) -> str:
    """The protocol's name of an output's type. RequestError for a type that it does not have."""
    element = "string" if array.dtype.kind == "O" else element_type(array.dtype)
    if element not in BY_ELEMENT:
        raise RequestError(400, f'output "{name}" has the type {element}, which the protocol does not have')
    return BY_ELEMENT[element]


def to_bytes(array: np.ndarray) -> bytes:
    if array.dtype.kind != "O":
        return array.tobytes()
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.flat]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def to_values(array: np.ndarray) -> list[typing.Any]:
    """As JSON has them: row by row; NaN and infinities as Python's JSON reads and writes them."""
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in array.ravel().tolist()]
