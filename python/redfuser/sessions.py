"""Sessions: runs of a program on one device."""

from __future__ import annotations

import json
import typing

from . import _core
from ._core import Tensor, UserError, ValueInfo
from .programs import Program, compile
from .tensors import as_tensor

LEGACY_STREAM = 1  # CUDA's handle of the default stream, which other libraries call 0


def stream_handle(stream: typing.Any) -> int:
    """The handle of a CUDA stream: a number, or a stream of torch, CuPy or others. None: 0, the session's own."""
    if stream is None:
        return 0
    for attribute in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, attribute):
            stream = getattr(stream, attribute)
            break
    return int(stream) or LEGACY_STREAM


class Session:
    """Runs a program on one device. Threads that share a session take turns; give each its own to run at once.

    device: "auto" (a GPU that can run the program, else the CPU), "cpu", "cuda" (UserError without one) or
    "reference" (fp64, node by node). threads: 0 is one per core. memory_limit: bytes; 0 is the machine's memory.
    GPU: tf32 lets fp32 products round their operands; exact_products and exact_masks as in docs/cli.md;
    kept_shapes is the number of sets of sizes that stay prepared; kernel_cache is "on", "off" or "readonly";
    tune measures the best few kernels of each step.
    """

    def __init__(self, program: typing.Any, *, device: str = "auto", threads: int = 0, memory_limit: int = 0,
                 tf32: bool = False, exact_products: bool = False, exact_masks: bool = False, kept_shapes: int = 8,
                 kernel_cache: str = "on", kernel_cache_folder: str = "", tune: bool = False) -> None:
        self.program = program if isinstance(program, Program) else compile(program)
        self._core = _core.session(
            self.program._core, device=device, threads=threads, memory_limit=memory_limit, tf32=tf32,
            exact_products=exact_products, exact_masks=exact_masks, kept_shapes=kept_shapes,
            kernel_cache=kernel_cache, kernel_cache_folder=kernel_cache_folder, tune=tune)
        infos = [*self.program.inputs, *self.program.model.overridable]
        self._types = {info.name: info.dtype for info in infos}

    @property
    def device(self) -> str:
        """ "cpu", "reference", or the GPU's name."""
        return self._core.device

    @property
    def on_gpu(self) -> bool:
        return self._core.on_gpu

    @property
    def notes(self) -> list[str]:
        """Remarks: compiled kernels, the reason why "auto" took the CPU, kernels that were replaced."""
        return self._core.notes

    @property
    def inputs(self) -> list[ValueInfo]:
        return self.program.inputs

    @property
    def outputs(self) -> list[ValueInfo]:
        return self.program.outputs

    def run(self, inputs: typing.Mapping[str, typing.Any] | None = None, /, *,
            into: typing.Mapping[str, typing.Any] | None = None, stream: typing.Any = None,
            **tensors: typing.Any) -> dict[str, Tensor]:
        """Runs on arrays by name, in a dict or as keywords, and returns every output by name.

        Arrays are read in place. Outputs lie in host memory, or on the GPU if an input or an array of `into` does.
        `into` names arrays that outputs are written to. Without a stream the run is over on return; on a stream of
        the caller (a handle, or a stream of torch or CuPy) it is enqueued there, and consumers of the outputs wait
        by DLPack.
        """
        return self._run({**(inputs or {}), **tensors}, into, stream)

    def _run(self, given: typing.Mapping[str, typing.Any], into: typing.Mapping[str, typing.Any] | None = None,
             stream: typing.Any = None, control: _core.RunControl | None = None) -> dict[str, Tensor]:
        """As run; `control` ends it."""
        handle = stream_handle(stream)
        if handle and not self.on_gpu:
            raise UserError(f"a CUDA stream was given, but the session runs on {self.device}")
        own = handle or self._core.stream or None
        values = {name: self._tensor("input", name, value, own) for name, value in given.items()}
        targets = {name: self._tensor("output", name, value, own) for name, value in (into or {}).items()}
        on_gpu = [*values.values(), *targets.values()]
        if handle or any(tensor.device == "cuda" for tensor in on_gpu):
            if not self.on_gpu:
                name = next(n for n, t in {**values, **targets}.items() if t.device == "cuda")
                raise UserError(f'"{name}" lies on the GPU, but the session runs on {self.device}')
            return _core.enqueue(self._core, self.program.model, values, targets, handle, control)
        outputs = self._core.run(values, control)
        for name, target in targets.items():
            if name not in outputs:
                raise UserError(f'the model has no output "{name}"')
            target.assign(outputs[name])
            outputs[name] = target
        return outputs

    def _tensor(self, role: str, name: str, value: typing.Any, stream: int | None) -> Tensor:
        try:
            return as_tensor(value, self._types.get(name) if role == "input" else None, stream)
        except Exception as error:
            raise UserError(f'{role} "{name}": {error}') from error

    def explain(self) -> dict[str, typing.Any]:
        """As Program.explain, with what computed each step of the last run."""
        return json.loads(self._core.explain_json())

    def to_device(self, value: typing.Any) -> Tensor:
        """A copy on the session's GPU."""
        return self._core.to_device(as_tensor(value))

    def to_host(self, value: typing.Any) -> Tensor:
        """A copy in host memory."""
        return self._core.to_host(as_tensor(value, stream=self._core.stream or None))

    def output_shapes(self, **shapes: typing.Sequence[int]) -> dict[str, list[int]]:
        """The sizes of the outputs for inputs of these sizes. UserError if they depend on data."""
        return self._core.output_shapes({name: list(sizes) for name, sizes in shapes.items()})
