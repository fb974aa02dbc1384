"""Models, compiled programs, and optimised files."""

from __future__ import annotations

import json
import os
import typing

from . import _core
from ._core import Model, Tensor, UserError, ValueInfo
from .tensors import as_tensor

if typing.TYPE_CHECKING:
    import onnx


def load(source: typing.Any, *, weights: typing.Mapping[str, typing.Any] | None = None,
         files: typing.Mapping[str, typing.Any] | None = None, sizes: typing.Mapping[str, int] | None = None,
         denoted_sizes: typing.Mapping[str, int] | None = None) -> Model:
    """Reads a model: a path, the bytes of a file, or an onnx.ModelProto.

    `weights` are arrays in place of the initializers of their names, whose data need not be there, and `files` the
    bytes of files of external data by their location; both are read in place and must stay unchanged. `sizes` are
    those of open dimensions of inputs by name, and `denoted_sizes` by denotation; names that there are not are
    passed over.
    """
    given = dict(weights={name: _host_tensor(name, value) for name, value in (weights or {}).items()},
                 files={name: _host_tensor(name, value) for name, value in (files or {}).items()},
                 sizes=dict(sizes or {}), denoted_sizes=dict(denoted_sizes or {}))
    if isinstance(source, Model):
        if any(given.values()):
            raise UserError("weights, files and sizes are those of a model that is read, and this one has been")
        return source
    if isinstance(source, (str, os.PathLike)):
        return Model.load(os.fspath(source), **given)
    if hasattr(source, "SerializeToString"):
        return Model.from_bytes(source.SerializeToString(), **given)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model.from_bytes(bytes(source), **given)
    raise UserError(f"a model is a path, bytes or a ModelProto, not {type(source).__name__}")


def _host_tensor(name: str, value: typing.Any) -> Tensor:
    try:
        return as_tensor(value)
    except Exception as error:
        raise UserError(f'"{name}": {error}') from error


class Program:
    """A compiled model. It serves every shape; threads may share it."""

    def __init__(self, model: Model, core: _core.Program) -> None:
        self.model = model
        self._core = core

    @property
    def inputs(self) -> list[ValueInfo]:
        return self.model.inputs

    @property
    def outputs(self) -> list[ValueInfo]:
        return self.model.outputs

    def explain(self, target: str = "") -> dict[str, typing.Any]:
        """The fused regions, and the refused ones with reasons; with a target such as "sm_90a" also the kernels."""
        return json.loads(self._core.explain_json(target))

    def text(self) -> str:
        """The plan, one step per line."""
        return self._core.text()

    def dump(self, stage: str, target: str = "sm_90a") -> str:
        """A stage of the pipeline as text, such as "cascade" or "cuda" (docs/cli.md)."""
        return self._core.dump(stage, target)

    def dot(self) -> str:
        """The fused graph in the DOT language."""
        return self._core.dot()

    def svg(self) -> str:
        """The fused graph, drawn by Graphviz. UserError where that is not installed."""
        return self._core.svg()

    def page(self, title: str = "", target: str = "") -> str:
        """An HTML page: the graph before and after, equations, kernels."""
        return self._core.page(title, target)

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg()
        except UserError:  # notebooks then show the text
            return None

    def __repr__(self) -> str:
        return self.text()


def compile(model: typing.Any, *, fuse: bool = True, certify: bool = True) -> Program:
    """Compiles a model, or whatever load takes. `fuse=False` keeps every operator on its own; `certify=False`
    does not test fusions on adversarial data."""
    loaded = load(model)
    return Program(loaded, _core.compile(loaded, fuse=fuse, certify=certify))


def optimize(model: typing.Any, *, emit: str = "function") -> onnx.ModelProto:
    """The optimised model, which other runtimes read too.

    `emit` is "function" (each fused region is a call of a model-local function), "inline" (the file's own nodes)
    or "standard" (the primitive operators that RedFuser works on).
    """
    try:
        import onnx
    except ImportError:
        raise UserError("optimize returns an onnx.ModelProto: install the package onnx") from None
    program = compile(model)
    return onnx.load_from_string(_core.optimized(program.model, program._core, emit))
