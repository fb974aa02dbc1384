"""Batch work by Ray Data."""

from __future__ import annotations

import typing

import numpy as np

from .._core import UserError
from ..programs import compile
from ..providers import did_you_mean
from ..sessions import Session
from ..tensors import numpy_dtype, to_numpy


class Predictor:
    """Runs a model on batches of a data set, in an actor with a session of its own:

        dataset.map_batches(Predictor, fn_constructor_kwargs={"model": "model.onnx"}, batch_size=64, concurrency=2)

    `columns` names the column of an input where the two differ; other columns are passed on, before the outputs.
    Rows of the data set are rows of the first dimension of each input and output. The other arguments are those of
    Session. UserError for a column of an input that there is not, and as from compile and Session.
    """

    def __init__(self, model: typing.Any, columns: typing.Mapping[str, str] | None = None, **session: typing.Any) -> None:
        self.session = Session(compile(model), **session)
        self.columns = {info.name: info.name for info in self.session.inputs}
        for name in columns or {}:
            if name not in self.columns:
                raise UserError(f'columns: the model has no input "{name}"{did_you_mean(name, self.columns)}')
        self.columns.update(columns or {})
        self._dtypes = {info.name: numpy_dtype(info.dtype) for info in self.session.inputs}

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """UserError for a missing column, and as from Session.run."""
        inputs = {name: np.asarray(batch[column], self._dtypes[name])
                  for name, column in self.columns.items() if column in batch}
        outputs = self.session.run(inputs)
        return {**batch, **{name: to_numpy(tensor) for name, tensor in outputs.items()}}
