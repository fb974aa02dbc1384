"""Calls of replicas by a model's name, through Ray's handles."""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing

from ray import serve
from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator

from ..providers import did_you_mean
from .applications import Limits, State, application_of, load, model, served, unload
from .datatypes import datatype_of
from .errors import Refusal, RequestError
from .generation import GenerateRequest
from .repository import Repository

PATIENCE_S = 5.0  # with a question that takes a replica no time
Table = typing.Dict[str, typing.Any]


def absence(folder: str, name: str) -> RequestError:
    """Why a model has no application."""
    try:
        model({"folder": folder, "name": name})
    except Exception as error:  # of the options, by this package or by Ray
        return RequestError(404, str(error))
    return RequestError(404, f'model "{name}" is not loaded{did_you_mean(name, served())}')


def accepted(answer: typing.Any) -> typing.Any:
    """RequestError for a Refusal."""
    if isinstance(answer, Refusal):
        raise RequestError(answer.status, answer.message)
    return answer


def sizes_of(shape: typing.Sequence[int | str] | None) -> list[int]:
    return [size if isinstance(size, int) else -1 for size in shape or []]


class Calls:
    """A run of a model changes nothing, so a request goes to another replica where one dies with it."""

    def __init__(self, folder: str, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._handles: dict[str, DeploymentHandle] = {}
        self._looked_at = 0.0

    async def _states(self) -> dict[str, State]:
        """A request to an application that was removed would wait for its replicas."""
        self._looked_at = time.monotonic()
        states = await asyncio.to_thread(served)
        self._handles = {name: handle for name, handle in self._handles.items() if name in states}
        return states

    async def handle(self, name: str) -> DeploymentHandle:
        """Of a model that has run. RequestError, with the reason: 404 for one without an application, 503 for one whose
        first replica has not started."""
        if time.monotonic() - self._looked_at > 1:
            await self._states()
        if name not in self._handles:
            state = (await self._states()).get(name)
            if state is None:
                raise await asyncio.to_thread(absence, self.folder, name)
            if state.status != "RUNNING":
                raise RequestError(503, f'model "{name}": no replica has started yet {state.message}'.rstrip())
            self._handles[name] = await asyncio.to_thread(serve.get_app_handle, application_of(name))
        return self._handles[name]

    async def load(self, name: str) -> None:
        """RequestError 400 with the reason why the folder's files are not served."""
        problem = await asyncio.to_thread(load, self.folder, name)
        if problem is not None:
            raise RequestError(400, problem)

    async def unload(self, name: str) -> None:
        """RequestError 404 for a model that is not served."""
        if name not in await self._states():
            raise await asyncio.to_thread(absence, self.folder, name)
        self._handles.pop(name, None)
        await asyncio.to_thread(unload, name)

    async def call(self, name: str, method: str, *args: typing.Any) -> typing.Any:
        """A replica's answer. RequestError for a Refusal, for a model that is not served, and where replicas die or
        have too many requests."""
        for _ in range(self.limits.attempts):
            handle = await self.handle(name)
            with self._lost(name):
                return accepted(await getattr(handle, method).remote(*args))
        raise RequestError(503, f'model "{name}": no replica answered in {self.limits.attempts} attempts')

    async def generate(self, name: str, version: str, request: GenerateRequest) -> typing.AsyncIterator[typing.Any]:
        """Yields the version, then (row, token) of each token. Another replica generates the same tokens, so where one
        dies the next one goes on behind those that were yielded. RequestError as from call, and where the next one has
        another version."""
        sent: list[typing.Any] = []
        for _ in range(self.limits.attempts):
            handle = (await self.handle(name)).options(stream=True)
            with self._lost(name):
                position = 0
                answers = typing.cast(DeploymentResponseGenerator, handle.generate.remote(version, request))
                async for item in answers:
                    accepted(item)
                    if position == len(sent):
                        sent.append(item)
                        yield item
                    elif item != sent[position]:
                        raise RequestError(503, f'model "{name}" was replaced while it generated')
                    position += 1
                return
        raise RequestError(503, f'model "{name}": no replica answered in {self.limits.attempts} attempts')

    @contextlib.contextmanager
    def _lost(self, name: str) -> typing.Iterator[None]:
        """Goes on where a replica or its application has gone."""
        try:
            yield
        except RayActorError:
            pass
        except BackPressureError as error:
            raise RequestError(503, str(error)) from None
        except DeploymentUnavailableError:
            self._handles.pop(name, None)  # removed, and perhaps served anew

    async def describe(self, name: str, version: str = "") -> Table:
        """ModelReplica.describe; RequestError 503 where no replica runs yet."""
        try:
            return await asyncio.wait_for(self.call(name, "describe", version), PATIENCE_S)
        except asyncio.TimeoutError:
            raise RequestError(503, f'model "{name}": no replica has started yet') from None

    async def check_ready(self) -> None:
        """RequestError for the first model of the folder that does not answer."""
        for name in Repository(self.folder).names():
            await self.describe(name)

    async def metadata(self, name: str, version: str = "") -> Table:
        """As the protocol has it, with the device and why newer files are not served (`problem`)."""
        found = await self.describe(name, version)
        tensors = {part: [{"name": tensor, "datatype": datatype_of(element), "shape": sizes_of(shape)}
                          for tensor, element, shape in found[part]] for part in ("inputs", "outputs")}
        described = {"name": name, "versions": [found["version"]], "platform": "redfuser", **tensors,
                     "device": found["device"]}
        return described if found["problem"] is None else {**described, "problem": found["problem"]}

    async def config(self, name: str, version: str = "") -> Table:
        """As Triton's clients ask for it: sizes without the rows where requests share runs."""
        found = await self.describe(name, version)
        most = found["max_rows"] if found["max_rows"] > 1 else 0
        tensors = {part: [{"name": tensor, "data_type": f"TYPE_{datatype_of(element).replace('BYTES', 'STRING')}",
                           "dims": sizes_of(shape)[1 if most else 0:]} for tensor, element, shape in found[f"{part}s"]]
                   for part in ("input", "output")}
        return {"name": name, "platform": "redfuser", "max_batch_size": most, **tensors}

    async def index(self) -> list[Table]:
        """Every model of the folder, and others that are served."""
        found = []
        for name in sorted({*Repository(self.folder).names(), *await asyncio.to_thread(served)}):
            try:
                described = await self.describe(name)
                found.append({"name": name, "version": described["version"], "state": "READY",
                              "reason": described["problem"] or ""})
            except RequestError as error:
                found.append({"name": name, "state": "UNAVAILABLE", "reason": str(error)})
        return found
