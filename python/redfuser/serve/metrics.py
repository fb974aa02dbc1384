"""Figures of a replica, which Ray exports for Prometheus beside its own (docs/serving.md)."""

from __future__ import annotations

import contextlib
import time
import typing

from ray.serve import metrics

from .errors import Refusal

RUN_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]


class Metrics:
    def __init__(self, model: str) -> None:
        self._requests = metrics.Counter("redfuser_requests", description="Requests by the status of their answer.",
                                         tag_keys=("model", "status"))  # type: ignore[arg-type]
        self._runs = metrics.Histogram("redfuser_run_seconds", description="The time of a run of the session.",
                                       boundaries=RUN_SECONDS, tag_keys=("model",))
        self._tokens = metrics.Counter("redfuser_tokens", description="Generated tokens.", tag_keys=("model",))
        self._reloads = metrics.Counter("redfuser_reloads", description="Versions that were loaded, or were not.",
                                        tag_keys=("model", "result"))  # type: ignore[arg-type]
        self._tags = {"model": model}

    def answered(self, answer: typing.Any) -> None:
        status = answer.status if isinstance(answer, Refusal) else 200
        self._requests.inc(1, tags={**self._tags, "status": str(status)})

    @contextlib.contextmanager
    def run(self) -> typing.Iterator[None]:
        start = time.perf_counter()
        yield
        self._runs.observe(time.perf_counter() - start, tags=self._tags)

    def token(self) -> None:
        self._tokens.inc(1, tags=self._tags)

    def reloaded(self, succeeded: bool) -> None:
        self._reloads.inc(1, tags={**self._tags, "result": "loaded" if succeeded else "failed"})
