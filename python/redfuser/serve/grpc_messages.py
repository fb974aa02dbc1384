"""Requests and answers of the protocol's gRPC form."""

from __future__ import annotations

import typing

import numpy as np
from tritonclient.grpc import service_pb2 as pb

from .datatypes import array_datatype, from_bytes, from_values, to_bytes
from .errors import RequestError
from .messages import InferRequest, chosen, named

# The field of `contents` with the values of a datatype.
CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
            "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
            "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}


def parameters_of(message: typing.Any) -> dict[str, typing.Any]:
    return {name: getattr(value, value.WhichOneof("parameter_choice") or "", None)
            for name, value in message.parameters.items()}


def decoded_message(message: typing.Any) -> InferRequest:
    """As messages.decoded."""
    inputs: dict[str, np.ndarray] = {}
    raw = message.raw_input_contents
    if len(raw) not in (0, len(message.inputs)):
        raise RequestError(400, f"{len(raw)} raw_input_contents for {len(message.inputs)} inputs")
    for i, entry in enumerate(message.inputs):
        name = named(f"input {i}", {"name": entry.name}, inputs)
        where = f'input "{name}"'
        if "shared_memory_region" in entry.parameters:
            raise RequestError(400, f"{where}: shared memory is not supported")
        if len(raw) > 0:
            inputs[name] = from_bytes(where, entry.datatype, list(entry.shape), raw[i])
            continue
        if entry.datatype not in CONTENTS:
            raise RequestError(400, f"{where}: {entry.datatype} is given in raw_input_contents alone")
        values = list(getattr(entry.contents, CONTENTS[entry.datatype]))
        inputs[name] = from_values(where, entry.datatype, list(entry.shape), values)
    wanted = {named("an output", {"name": entry.name}, ()): parameters_of(entry) for entry in message.outputs}
    return InferRequest(message.id, inputs, list(wanted.items()) or None, parameters_of(message))


def encoded_message(request: InferRequest, model: str, version: str, outputs: dict[str, np.ndarray]) -> typing.Any:
    """A ModelInferResponse whose tensors are raw."""
    answer = pb.ModelInferResponse(model_name=model, model_version=version, id=request.id)
    for name, array, _ in chosen(request, outputs):
        answer.outputs.add(name=name, datatype=array_datatype(name, array), shape=array.shape)
        answer.raw_output_contents.append(to_bytes(array))
    return answer
