"""A replica of a model: one process with a session. Ray Serve places, scales and restarts it, and forms its batches."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import typing

from ray import serve

from .._core import Error
from ..generator import Generator
from .errors import Refusal, refusal_of
from .generation import GenerateRequest, generated
from .loaded import Arrays, LoadedModel, rows_of
from .metrics import Metrics
from .repository import Repository

logger = logging.getLogger("ray.serve")
Answer = typing.Tuple[str, Arrays]  # the version, and its outputs


@dataclasses.dataclass
class Rows:
    """A request that may share a run."""

    inputs: Arrays
    count: int


def total_rows(requests: list[Rows]) -> int:
    return sum(request.count for request in requests)


def others_run(application: str) -> bool:
    """Whether another replica of the application answers requests."""
    status = serve.status().applications.get(application)
    return status is not None and any(state == "RUNNING" and count > 0 for deployment in status.deployments.values()
                                      for state, count in deployment.replica_states.items())


class ModelReplica:
    """Answers are a version and its outputs, or a Refusal. The first replica of a model that cannot be loaded says so in
    answer to every request; later ones fail to start, so that Ray goes on with those that run."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name
        self.metrics = Metrics(name)
        self.loaded: LoadedModel | None = None
        self.problem: str | None = None  # why the files of now are not served
        if not self._load() and others_run(serve.get_replica_context().app_name):
            raise RuntimeError(self.problem)

    def _load(self) -> bool:
        """Loads what the folder has. Until it can run, and if it cannot, the version before it stays."""
        try:
            entry = Repository(self.folder).entry(self.name)
            if self.loaded is not None and self.problem is None and entry.stamp() == self.loaded.stamp:
                return True
            loaded = LoadedModel(entry)
        except Exception as error:
            self.problem = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            logger.error(f'model "{self.name}" is not loaded: {self.problem}')
            self.metrics.reloaded(False)
            return False
        self._together.set_max_batch_size(loaded.max_rows)  # type: ignore[attr-defined]
        self._together.set_batch_wait_timeout_s(loaded.options.batching["wait_ms"] / 1e3)  # type: ignore[attr-defined]
        self.loaded, self.problem = loaded, None
        self.metrics.reloaded(True)
        return True

    async def reload(self) -> str | None:
        """Serves what the folder has, or says why it does not."""
        await asyncio.to_thread(self._load)
        return self.problem

    async def infer(self, version: str, inputs: Arrays) -> Answer | Refusal:
        answer = self._refusal(version) or await self._answer(inputs)
        self.metrics.answered(answer)
        return answer

    async def _answer(self, inputs: Arrays) -> Answer | Refusal:
        rows, most = rows_of(inputs), self.loaded.max_rows  # type: ignore[union-attr]
        if rows is not None and 0 < rows < most:
            return await self._together(Rows(inputs, rows))
        return (await asyncio.to_thread(self._run, [inputs]))[0]

    @serve.batch(batch_size_fn=total_rows)
    async def _together(self, requests: list[Rows]) -> list[Answer | Refusal]:
        return await asyncio.to_thread(self._run, [request.inputs for request in requests])

    def _run(self, requests: list[Arrays]) -> list[Answer | Refusal]:
        loaded = typing.cast(LoadedModel, self.loaded)  # one version for all, whatever is loaded meanwhile
        with self.metrics.run():
            results = loaded.run_together(requests)
        return [refusal_of(result) if isinstance(result, Exception) else (loaded.entry.version, result)
                for result in results]

    async def generate(self, version: str, request: GenerateRequest) -> typing.AsyncIterator[typing.Any]:
        """Yields the version, then (row, token) of each token; a Refusal in place of what cannot follow."""
        refusal = self._refusal(version)
        loaded = typing.cast(LoadedModel, self.loaded)
        if refusal is None and loaded.generator is None:
            refusal = Refusal(400, f'model "{self.name}" is not a decoder with states, and generates no tokens')
        if refusal is None:
            yield loaded.entry.version
            try:
                async for row, token in generated(typing.cast(Generator, loaded.generator), request):
                    self.metrics.token()
                    yield row, token
            except Exception as error:
                refusal = refusal_of(error)
        self.metrics.answered(refusal)
        if refusal is not None:
            yield refusal

    def _refusal(self, version: str) -> Refusal | None:
        if self.loaded is None:
            return Refusal(503, self.problem or "the model is not loaded")
        if version not in ("", self.loaded.entry.version):
            return Refusal(404, f'model "{self.name}" is served in version {self.loaded.entry.version}, not "{version}"')
        return None

    async def describe(self, version: str = "") -> dict[str, typing.Any] | Refusal:
        """Name, version, inputs, outputs, whether it generates tokens, and why newer files are not served (`problem`)."""
        refusal = self._refusal(version)
        if refusal is not None or self.loaded is None:
            return refusal or Refusal(503, "")
        session = self.loaded.session
        return {"name": self.name, "version": self.loaded.entry.version, "device": session.device,
                "max_rows": self.loaded.max_rows, "generates": self.loaded.generator is not None, "problem": self.problem,
                "inputs": [(info.name, info.dtype, info.shape) for info in session.inputs],
                "outputs": [(info.name, info.dtype, info.shape) for info in session.outputs]}
