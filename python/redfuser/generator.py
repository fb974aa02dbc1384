"""Tokens of a decoder, one run per token after the prompt (docs/decoding.md)."""

from __future__ import annotations

import dataclasses
import queue
import threading
import typing

import numpy as np

from . import _core
from ._core import Tensor
from .sessions import Session
from .tensors import as_tensor

State = typing.Tuple[str, str, typing.Optional[int]]


@dataclasses.dataclass(frozen=True)
class Generation:
    """tokens: by row of the batch, without the prompt. first_token_ms: to the first token of every row; token_ms: from
    each token of the batch to the next."""

    tokens: list[list[int]]
    first_token_ms: float
    token_ms: list[float]


def _ids(value: typing.Any) -> Tensor:
    """int64[batch, length] of integers; of one row also without the batch."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.dtype != np.int64 or array.size == 0:
        array = array.astype(np.int64)
    return as_tensor(array[None] if array.ndim == 1 else array)


class Generator:
    """Generates tokens by a session, whose keys and values stay on its device.

    `states` has the pairs (past, present) or (past, present, axis) that names do not tell; `capacity` is the number
    of positions at most, 0: as memory allows. UserError for a model without states or logits, and for an input that
    cannot be filled.
    """

    def __init__(self, session: Session, *, states: typing.Sequence[typing.Sequence[typing.Any]] = (),
                 capacity: int = 0) -> None:
        self.session = session
        pairs = [(past, present, axis[0] if axis else None) for past, present, *axis in states]
        self._core = _core.generator(session._core, session.program.model, pairs, capacity)

    def generate(self, prompt: typing.Any, mask: typing.Any = None, *, max_tokens: int = 128, prompt_chunk: int = 0,
                 repetition_penalty: float = 1.0, temperature: float | None = None, top_k: int = 0, top_p: float = 1.0,
                 seed: int = 0, stop: typing.Sequence[int] = (),
                 on_token: typing.Callable[[int, int], typing.Any] | None = None) -> Generation:
        """Starts with empty states. The prompt is ids [batch, length], or [length] of one row; where rows are shorter,
        `mask` is 0 for their padding on the left.

        The next token is that of the largest logit, unless `temperature`, `top_k` or `top_p` draw it, by `seed`. A
        token of `stop` ends its row. `on_token(row, token)` is called with each token as it is known; False ends the
        generation. It must not use the session. UserError as from include/redfuser/generate.h.
        """
        tokens, first_token_ms, token_ms = self._core.generate(
            _ids(prompt), None if mask is None else _ids(mask), max_tokens=max_tokens, prompt_chunk=prompt_chunk,
            repetition_penalty=repetition_penalty, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
            stop=list(stop), on_token=on_token)
        return Generation(tokens, first_token_ms, token_ms)

    def stream(self, prompt: typing.Any, mask: typing.Any = None, **options: typing.Any) -> typing.Iterator[tuple[int, int]]:
        """Yields (row, token) as each is known, from a thread that generates. Options are those of generate. Closing
        the iterator ends the generation."""
        found: queue.SimpleQueue[typing.Any] = queue.SimpleQueue()
        ended = threading.Event()

        def on_token(row: int, token: int) -> bool:
            found.put((row, token))
            return not ended.is_set()

        def run() -> None:
            try:
                self.generate(prompt, mask, on_token=on_token, **options)
                found.put(None)
            except BaseException as error:
                found.put(error)

        thread = threading.Thread(target=run, name="redfuser.Generator")
        thread.start()
        try:
            while (item := found.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            ended.set()
            thread.join()

    @property
    def states(self) -> list[State]:
        """Past, present and axis of each state; without an axis its size does not grow."""
        return self._core.states

    @property
    def length(self) -> int:
        """Positions of the longest growing state: of the prompt and all tokens but the last."""
        return self._core.length

    def read(self, name: str) -> Tensor:
        """A copy in host memory of a state, by the name of its input or output."""
        return self._core.read(name)
