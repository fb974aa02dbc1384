"""The protocol's gRPC service, whose messages the package tritonclient has (compiled; BSD-3-Clause)."""

from __future__ import annotations

import functools
import sys
import typing

import grpc
import numpy as np
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from tritonclient.grpc import service_pb2 as pb

from .._core import VERSION
from .calls import Calls
from .errors import RequestError
from .generation import GenerateRequest, checked_options
from .grpc_messages import decoded_message, encoded_message
from .messages import InferRequest
from .rest import EXTENSIONS

# The modules' names in the classes of messages, by which Ray's processes send them to each other.
sys.modules.setdefault("grpc_service_pb2", service_pb2)
sys.modules.setdefault("model_config_pb2", model_config_pb2)
CODES = {400: grpc.StatusCode.INVALID_ARGUMENT, 404: grpc.StatusCode.NOT_FOUND, 413: grpc.StatusCode.RESOURCE_EXHAUSTED,
         503: grpc.StatusCode.UNAVAILABLE}
PROMPT = ("input_ids", "attention_mask")


def add_to_server(servicer: typing.Any, server: typing.Any) -> None:
    """For gRPCOptions of Ray Serve."""
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)


def answering(empty: typing.Callable[[], typing.Any]) -> typing.Callable[[typing.Any], typing.Any]:
    """A method whose RequestError becomes a status and an empty answer."""
    def decorated(method: typing.Callable[..., typing.Any]) -> typing.Callable[..., typing.Any]:
        @functools.wraps(method)
        async def answered(self: Service, request: typing.Any, grpc_context: typing.Any) -> typing.Any:
            try:
                return await method(self, request)
            except RequestError as error:
                grpc_context.set_code(CODES.get(error.status, grpc.StatusCode.INTERNAL))
                grpc_context.set_details(str(error))
                return empty()
        del answered.__wrapped__  # Ray looks for the parameter grpc_context
        return answered
    return decorated


class Service:
    """The methods, by the names that Ray's proxy calls."""

    calls: Calls

    async def ServerLive(self, request: typing.Any) -> typing.Any:
        return pb.ServerLiveResponse(live=True)

    async def ServerReady(self, request: typing.Any) -> typing.Any:
        return pb.ServerReadyResponse(ready=await succeeds(self.calls.check_ready()))

    async def ModelReady(self, request: typing.Any) -> typing.Any:
        return pb.ModelReadyResponse(ready=await succeeds(self.calls.describe(request.name, request.version)))

    async def ServerMetadata(self, request: typing.Any) -> typing.Any:
        return pb.ServerMetadataResponse(name="redfuser", version=VERSION, extensions=EXTENSIONS)

    @answering(pb.ModelMetadataResponse)
    async def ModelMetadata(self, request: typing.Any) -> typing.Any:
        found = await self.calls.metadata(request.name, request.version)
        return pb.ModelMetadataResponse(**{name: found[name] for name in ("name", "versions", "platform", "inputs", "outputs")})

    @answering(pb.ModelConfigResponse)
    async def ModelConfig(self, request: typing.Any) -> typing.Any:
        return pb.ModelConfigResponse(config=await self.calls.config(request.name, request.version))

    @answering(pb.ModelInferResponse)
    async def ModelInfer(self, request: typing.Any) -> typing.Any:
        return await self._infer(request, self._decoded(request))

    async def ModelStreamInfer(self, request_stream: typing.Any) -> typing.AsyncIterator[typing.Any]:
        """An answer for each request; of a decoder, an answer for each token."""
        async for request in request_stream:
            try:
                async for answer in self._answers(request, self._decoded(request)):
                    yield pb.ModelStreamInferResponse(infer_response=answer)
            except RequestError as error:
                yield pb.ModelStreamInferResponse(error_message=str(error),
                                                  infer_response=pb.ModelInferResponse(id=request.id))

    @answering(pb.RepositoryIndexResponse)
    async def RepositoryIndex(self, request: typing.Any) -> typing.Any:
        return pb.RepositoryIndexResponse(models=await self.calls.index())

    @answering(pb.RepositoryModelLoadResponse)
    async def RepositoryModelLoad(self, request: typing.Any) -> typing.Any:
        await self.calls.load(request.model_name)
        return pb.RepositoryModelLoadResponse()

    @answering(pb.RepositoryModelUnloadResponse)
    async def RepositoryModelUnload(self, request: typing.Any) -> typing.Any:
        await self.calls.unload(request.model_name)
        return pb.RepositoryModelUnloadResponse()

    def _decoded(self, message: typing.Any) -> InferRequest:
        if message.ByteSize() > self.calls.limits.request_bytes:
            raise RequestError(413, f"the request has more than {self.calls.limits.request_bytes} bytes")
        return decoded_message(message)

    async def _infer(self, message: typing.Any, request: InferRequest) -> typing.Any:
        version, outputs = await self.calls.call(message.model_name, "infer", message.model_version, request.inputs)
        return encoded_message(request, message.model_name, version, outputs)

    async def _answers(self, message: typing.Any, request: InferRequest) -> typing.AsyncIterator[typing.Any]:
        described = await self.calls.describe(message.model_name, message.model_version)
        if not described["generates"] or not set(request.inputs) <= set(PROMPT) or "input_ids" not in request.inputs:
            yield await self._infer(message, request)
            return
        prompt, mask = (request.inputs.get(name) for name in PROMPT)
        parameters = {name: value for name, value in request.parameters.items() if not name.startswith("triton_")}
        wanted = GenerateRequest(prompt, mask, checked_options(parameters))
        tokens = self.calls.generate(message.model_name, message.model_version, wanted)
        version = await anext(tokens)
        async for row, token in tokens:
            outputs = {"row": np.array([row]), "token": np.array([token])}
            yield encoded_message(request, message.model_name, version, outputs)


async def succeeds(question: typing.Awaitable[typing.Any]) -> bool:
    try:
        await question
    except RequestError:
        return False
    return True
