"""A version of a model that is ready to run, alone or several requests at once."""

from __future__ import annotations

import typing

import numpy as np

from .._core import UserError, ValueInfo
from ..generator import Generator
from ..programs import compile
from ..sessions import Session
from ..tensors import to_numpy
from .options import GENERATOR, read_options
from .repository import Entry

Arrays = typing.Dict[str, np.ndarray]


def shared_dimension(infos: typing.Sequence[ValueInfo]) -> str | None:
    """The symbol that is the first dimension of every one, else None."""
    first = {info.shape[0] if info.shape else None for info in infos}
    symbol = first.pop() if len(first) == 1 else None
    return symbol if isinstance(symbol, str) and symbol else None


def rows_of(inputs: Arrays) -> int | None:
    """The first dimension that all arrays have; None where they differ."""
    rows = {array.shape[0] if array.ndim else None for array in inputs.values()}
    return rows.pop() if len(rows) == 1 else None


def signature(inputs: Arrays) -> tuple[typing.Any, ...]:
    """Equal for requests that one run can take: by all but the first dimension."""
    return tuple(sorted((name, array.dtype.str, array.shape[1:]) for name, array in inputs.items()))


class LoadedModel:
    """Immutable but for the session's memory. UserError, as from compile and Session, for a model that cannot run, and
    for one whose options declare rows that it does not have."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.stamp = entry.stamp()
        self.options = read_options(entry)
        with entry.snapshot() as path:
            try:
                self.session = Session(compile(path), **self.options.session)
            except UserError as error:  # with the folder in place of its copy
                raise UserError(str(error).replace(str(path.parent), str(entry.model.parent))) from None
        self.generator = self._generator()
        self.max_rows: int = self.options.batching["max_rows"]
        if self.max_rows > 1 and shared_dimension([*self.session.inputs, *self.session.outputs]) is None:
            raise UserError(f"{entry.options}: max_rows is {self.max_rows}, but the inputs and outputs of the model have "
                            "no symbolic first dimension in common")

    def _generator(self) -> Generator | None:
        """None for a model that is not a decoder with states. UserError for one whose options say that it is."""
        try:
            return Generator(self.session, **self.options.generator)
        except UserError as error:
            if self.options.generator != GENERATOR:
                raise UserError(f"{self.entry.options}, [generator]: {error}") from None
            return None

    def run(self, inputs: Arrays) -> Arrays:
        return {name: to_numpy(tensor) for name, tensor in self.session.run(inputs).items()}

    def run_together(self, requests: typing.Sequence[Arrays]) -> list[Arrays | Exception]:
        """The outputs of each, or its error. Requests of one signature share a run; where that fails each has its
        own, so that an error is that of the request which caused it."""
        results: list[Arrays | Exception] = [{} for _ in requests]
        groups: dict[typing.Any, list[int]] = {}
        for i, inputs in enumerate(requests):
            groups.setdefault(signature(inputs), []).append(i)
        for members in groups.values():
            try:
                outputs = self._run_rows([requests[i] for i in members])
            except Exception as error:
                outputs = [error] if len(members) == 1 else [self._own(requests[i]) for i in members]
            for i, output in zip(members, outputs):
                results[i] = output
        return results

    def _own(self, inputs: Arrays) -> Arrays | Exception:
        try:
            return self.run(inputs)
        except Exception as error:
            return error

    def _run_rows(self, requests: typing.Sequence[Arrays]) -> list[Arrays | Exception]:
        if len(requests) == 1:
            return [self.run(requests[0])]
        together = {name: np.concatenate([inputs[name] for inputs in requests]) for name in requests[0]}
        outputs = self.run(together)
        ends = np.cumsum([rows_of(inputs) for inputs in requests])
        for name, array in outputs.items():
            if array.shape[:1] != (ends[-1],):
                return [UserError(f'output "{name}" is {list(array.shape)} for {ends[-1]} rows: '
                                  "the model must not declare max_rows")] * len(requests)
        parts = {name: np.split(array, ends[:-1]) for name, array in outputs.items()}
        return [{name: arrays[i] for name, arrays in parts.items()} for i in range(len(requests))]
