"""Requests and answers of the protocol's REST form: JSON, with binary tensors behind it."""

from __future__ import annotations

import dataclasses
import json
import typing

import numpy as np

from ..providers import did_you_mean
from .datatypes import array_datatype, from_bytes, from_values, to_bytes, to_values
from .errors import RequestError

LENGTH_HEADER = "Inference-Header-Content-Length"
FIELDS = {"request": ["id", "parameters", "inputs", "outputs"],
          "input": ["name", "shape", "datatype", "parameters", "data"], "output": ["name", "parameters"]}
Table = typing.Dict[str, typing.Any]


@dataclasses.dataclass
class InferRequest:
    id: str
    inputs: dict[str, np.ndarray]
    outputs: list[tuple[str, Table]] | None  # names and parameters; None: all
    parameters: Table


def table(where: str, value: typing.Any, kind: str | None = None) -> Table:
    """A JSON object, of the fields of this kind."""
    if not isinstance(value, dict):
        raise RequestError(400, f"{where} is not a JSON object")
    for name in value:
        if kind is not None and name not in FIELDS[kind]:
            raise RequestError(400, f'{where} has no field "{name}"{did_you_mean(name, FIELDS[kind])}')
    return value


def parsed(body: bytes, header_length: str | None) -> tuple[Table, memoryview]:
    """The JSON part and the bytes behind it."""
    length = len(body)
    if header_length is not None:
        if not header_length.isdecimal() or int(header_length) > len(body):
            raise RequestError(400, f"{LENGTH_HEADER} is {header_length}, but the body has {len(body)} bytes")
        length = int(header_length)
    try:
        return table("the request", json.loads(body[:length]), None), memoryview(body)[length:]
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the request is not JSON: {error}") from None


def named(where: str, entry: Table, seen: typing.Container[str]) -> str:
    name = entry.get("name")
    if not isinstance(name, str):
        raise RequestError(400, f"{where} has no name")
    if name in seen:
        raise RequestError(400, f'"{name}" is given twice')
    return name


def decoded(body: bytes, header_length: str | None) -> InferRequest:
    """RequestError, with the input, for whatever the protocol does not allow."""
    root, binary = parsed(body, header_length)
    table("the request", root, "request")
    inputs: dict[str, np.ndarray] = {}
    for i, entry in enumerate(entries(root, "inputs")):
        name = named(f"input {i}", table(f"input {i}", entry, "input"), inputs)
        where = f'input "{name}"'
        parameters = table(f"{where}: parameters", entry.get("parameters", {}))
        if "shared_memory_region" in parameters:
            raise RequestError(400, f"{where}: shared memory is not supported")
        size = parameters.get("binary_data_size")
        if size is None:
            if "data" not in entry:
                raise RequestError(400, f"{where} has neither data nor binary_data_size")
            inputs[name] = from_values(where, entry.get("datatype"), entry.get("shape"), entry["data"])
            continue
        if type(size) is not int or not 0 <= size <= len(binary):
            raise RequestError(400, f"{where}: binary_data_size is {size!r}, but {len(binary)} bytes are left")
        inputs[name] = from_bytes(where, entry.get("datatype"), entry.get("shape"), binary[:size])
        binary = binary[size:]
    if len(binary) > 0:
        raise RequestError(400, f"{len(binary)} bytes follow the last input")
    request_id = root.get("id", "")
    if not isinstance(request_id, str):
        raise RequestError(400, "the id is not a text")
    return InferRequest(request_id, inputs, wanted_outputs(root),
                        table("the request's parameters", root.get("parameters", {})))


def entries(root: Table, name: str) -> list[typing.Any]:
    value = root.get(name, [])
    if not isinstance(value, list):
        raise RequestError(400, f'"{name}" is not a list')
    return value


def wanted_outputs(root: Table) -> list[tuple[str, Table]] | None:
    if not root.get("outputs"):
        return None
    wanted: dict[str, Table] = {}
    for i, entry in enumerate(entries(root, "outputs")):
        name = named(f"output {i}", table(f"output {i}", entry, "output"), wanted)
        wanted[name] = table(f'output "{name}": parameters', entry.get("parameters", {}))
        for unsupported in ("classification", "shared_memory_region"):
            if unsupported in wanted[name]:
                raise RequestError(400, f'output "{name}": {unsupported} is not supported')
    return list(wanted.items())


def chosen(request: InferRequest, outputs: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray, Table]]:
    """The outputs that were asked for, with their parameters."""
    wanted = request.outputs if request.outputs is not None else [(name, {}) for name in outputs]
    for name, _ in wanted:
        if name not in outputs:
            raise RequestError(400, f'the model has no output "{name}"{did_you_mean(name, outputs)}')
    return [(name, outputs[name], parameters) for name, parameters in wanted]


def encoded(request: InferRequest, model: str, version: str,
            outputs: dict[str, np.ndarray]) -> tuple[bytes, dict[str, str]]:
    """The answer's body and headers."""
    described, binary = [], []
    default = request.parameters.get("binary_data_output", False)
    for name, array, parameters in chosen(request, outputs):
        entry: Table = {"name": name, "datatype": array_datatype(name, array), "shape": list(array.shape)}
        if parameters.get("binary_data", default):
            binary.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            entry["data"] = to_values(array)
        described.append(entry)
    root: Table = {"model_name": model, "model_version": version, "outputs": described}
    if request.id:
        root["id"] = request.id
    head = json.dumps(root).encode()
    if not binary:
        return head, {"Content-Type": "application/json"}
    return b"".join([head, *binary]), {"Content-Type": "application/octet-stream", LENGTH_HEADER: str(len(head))}
