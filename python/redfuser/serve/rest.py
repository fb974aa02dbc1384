"""The protocol's REST routes."""

from __future__ import annotations

import typing

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .._core import VERSION
from .calls import Calls
from .errors import RequestError
from .messages import LENGTH_HEADER, decoded, encoded

EXTENSIONS = ["binary_tensor_data", "model_configuration", "model_repository"]


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
                  ("GET", f"{model}/config", routes.config), ("POST", f"{model}/infer", routes.infer)]
    return Starlette(routes=[Route(path, handler, methods=[method]) for method, path, handler in table],
                     exception_handlers={RequestError: told, HTTPException: not_routed, Exception: told})
