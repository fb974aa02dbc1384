"""The deployment behind both transports, which forwards requests to the applications of models."""

from __future__ import annotations

import typing

from .applications import Limits
from .calls import Calls
from .grpc_service import Service
from .rest import routes_of


class Ingress(Service):
    """Ray Serve's HTTP proxy calls the application of the routes, its gRPC proxy the methods."""

    def __init__(self, folder: str, limits: Limits) -> None:
        self.calls = Calls(folder, limits)

    def __serve_build_asgi_app__(self) -> typing.Any:
        return routes_of(self.calls)
