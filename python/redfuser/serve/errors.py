"""What a client is told: an HTTP status and one line."""

from __future__ import annotations

import dataclasses

from .._core import UserError


@dataclasses.dataclass
class Refusal:
    """A replica's answer in place of outputs: the status of HTTP and the message of the C++ library."""

    status: int
    message: str


def refusal_of(error: Exception) -> Refusal:
    """400 for the request's own fault, 500 for any other."""
    return Refusal(400 if isinstance(error, UserError) else 500, str(error) or type(error).__name__)


class RequestError(Exception):
    """Ends a request with a status of HTTP and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
