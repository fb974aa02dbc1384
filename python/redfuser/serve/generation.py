"""Tokens of a served decoder: what a client asks for, and a replica's answer, token by token."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import threading
import typing

from .._core import UserError
from ..generator import Generator
from ..providers import did_you_mean
from .errors import RequestError

FIELDS = ["input_ids", "attention_mask", "parameters"]
# Options of Generator.generate that a client may give, with values of their types.
OPTIONS = {name: {"temperature": 0.0, "stop": []}.get(name, parameter.default)
           for name, parameter in inspect.signature(Generator.generate).parameters.items()
           if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "on_token"}


@dataclasses.dataclass
class GenerateRequest:
    prompt: typing.Any
    mask: typing.Any
    options: dict[str, typing.Any]


def checked_options(given: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """RequestError 400 for unknown names and values of another type."""
    for name, value in given.items():
        if name not in OPTIONS:
            raise RequestError(400, f'there is no parameter "{name}"{did_you_mean(name, OPTIONS)}')
        wanted = type(OPTIONS[name])
        fits = type(value) is wanted or wanted is float and type(value) is int
        if not fits or wanted is list and not all(type(token) is int for token in value):
            raise RequestError(400, f"parameter {name} is {value!r}, but takes a value of type {wanted.__name__}")
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise RequestError(400, f"parameter {name} is out of range")
    return dict(given)


def generate_request(body: dict[str, typing.Any]) -> GenerateRequest:
    """Of JSON: input_ids [batch, length] or [length], attention_mask likewise, and parameters."""
    for name in body:
        if name not in FIELDS:
            raise RequestError(400, f'the request has no field "{name}"{did_you_mean(name, FIELDS)}')
    if "input_ids" not in body:
        raise RequestError(400, "the request has no input_ids")
    parameters = body.get("parameters", {})
    if not isinstance(parameters, dict):
        raise RequestError(400, "the parameters are not a JSON object")
    return GenerateRequest(body["input_ids"], body.get("attention_mask"), checked_options(parameters))


async def generated(generator: Generator, request: GenerateRequest) -> typing.AsyncIterator[tuple[int, int]]:
    """(row, token) of each token, from a thread of its own. Closing the iterator ends the generation. UserError as from
    Generator.generate."""
    loop, found, ended = asyncio.get_running_loop(), asyncio.Queue(), threading.Event()  # type: ignore[var-annotated]

    def on_token(row: int, token: int) -> bool:
        loop.call_soon_threadsafe(found.put_nowait, (row, token))
        return not ended.is_set()

    def run() -> None:
        try:
            generator.generate(request.prompt, request.mask, on_token=on_token, **request.options)
        except (TypeError, ValueError, OverflowError) as error:  # ids that are not integers of one rank
            raise UserError(str(error)) from None

    task = asyncio.ensure_future(asyncio.to_thread(run))
    task.add_done_callback(lambda _: found.put_nowait(None))
    try:
        while (item := await found.get()) is not None:
            yield item
        await task
    finally:
        ended.set()
