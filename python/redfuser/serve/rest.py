"""The protocol's REST routes."""

from __future__ import annotations

import json
import typing

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .._core import VERSION
from .calls import Calls
from .errors import RequestError
from .generation import GenerateRequest, generate_request
from .messages import LENGTH_HEADER, decoded, encoded, parsed

EXTENSIONS = ["binary_tensor_data", "generate", "model_configuration", "model_repository"]


async def told(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, RequestError) else 500
    return JSONResponse({"error": str(error)}, status)


async def not_routed(request: Request, error: Exception) -> Response:
    failure = typing.cast(HTTPException, error)
    return JSONResponse({"error": f"{request.method} {request.url.path}: {failure.detail}"}, failure.status_code)


async def body_of(request: Request, most: int) -> bytes:
    """RequestError 413 for a body of more than so many bytes, of which the rest is not read."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestError(415, "compressed requests are not supported")
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise RequestError(413, f"the request has more than {most} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def event(value: dict[str, typing.Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def names_of(request: Request) -> tuple[str, str]:
    """The model and its version ("": the served one)."""
    return request.path_params["name"], request.path_params.get("version", "")


class Routes:
    """The handlers, each of a request."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    async def server(self, request: Request) -> Response:
        return JSONResponse({"name": "redfuser", "version": VERSION, "extensions": EXTENSIONS})

    async def live(self, request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(self, request: Request) -> Response:
        await self.calls.check_ready()
        return JSONResponse({"ready": True})

    async def model_ready(self, request: Request) -> Response:
        await self.calls.describe(*names_of(request))
        return JSONResponse({"ready": True})

    async def model(self, request: Request) -> Response:
        return JSONResponse(await self.calls.metadata(*names_of(request)))

    async def config(self, request: Request) -> Response:
        return JSONResponse(await self.calls.config(*names_of(request)))

    async def infer(self, request: Request) -> Response:
        name, version = names_of(request)
        wanted = decoded(await body_of(request, self.calls.limits.request_bytes), request.headers.get(LENGTH_HEADER))
        answered, outputs = await self.calls.call(name, "infer", version, wanted.inputs)
        content, headers = encoded(wanted, name, answered, outputs)
        return Response(content, headers=headers)

    async def generate(self, request: Request) -> Response:
        """All tokens, by row."""
        name, version = names_of(request)
        tokens = self.calls.generate(name, version, await self._generate_request(request))
        answer: dict[str, typing.Any] = {"model_name": name, "model_version": await anext(tokens)}
        rows: dict[int, list[int]] = {}
        async for row, token in tokens:
            rows.setdefault(row, []).append(token)
        return JSONResponse({**answer, "tokens": [rows[row] for row in sorted(rows)]})

    async def generate_stream(self, request: Request) -> Response:
        """An event (server-sent) for each token; before the first one errors have a status of their own."""
        name, version = names_of(request)
        tokens = self.calls.generate(name, version, await self._generate_request(request))
        head = {"model_name": name, "model_version": await anext(tokens)}
        first = await anext(tokens, None)

        async def events() -> typing.AsyncIterator[str]:
            try:
                if first is not None:
                    yield event({**head, "row": first[0], "token": first[1]})
                    async for row, token in tokens:
                        yield event({**head, "row": row, "token": token})
            except RequestError as error:
                yield event({"error": str(error)})

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _generate_request(self, request: Request) -> GenerateRequest:
        body = await body_of(request, self.calls.limits.request_bytes)
        return generate_request(parsed(body, None)[0])

    async def index(self, request: Request) -> Response:
        return JSONResponse(await self.calls.index())

    async def load(self, request: Request) -> Response:
        await self.calls.load(request.path_params["name"])
        return JSONResponse({})

    async def unload(self, request: Request) -> Response:
        await self.calls.unload(request.path_params["name"])
        return JSONResponse({})


def routes_of(calls: Calls) -> Starlette:
    """The application that answers for all models."""
    routes = Routes(calls)
    table = [("GET", "/v2", routes.server), ("GET", "/v2/health/live", routes.live),
             ("GET", "/v2/health/ready", routes.ready), ("POST", "/v2/repository/index", routes.index),
             ("POST", "/v2/repository/models/{name}/load", routes.load),
             ("POST", "/v2/repository/models/{name}/unload", routes.unload)]
    for model in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
        table += [("GET", model, routes.model), ("GET", f"{model}/ready", routes.model_ready),
                  ("GET", f"{model}/config", routes.config), ("POST", f"{model}/infer", routes.infer),
                  ("POST", f"{model}/generate", routes.generate),
                  ("POST", f"{model}/generate_stream", routes.generate_stream)]
    return Starlette(routes=[Route(path, handler, methods=[method]) for method, path, handler in table],
                     exception_handlers={RequestError: told, HTTPException: not_routed, Exception: told})
