"""InferenceSession, with the interface of ONNX Runtime's, so that a script changes one import."""

from __future__ import annotations

import enum
import typing

from . import providers as _providers
from ._core import UserError, ValueInfo
from .ort_values import IOBinding, OrtValue
from .programs import compile
from .sessions import Session
from .tensors import to_numpy, type_name


def get_available_providers() -> list[str]:
    return [_providers.CUDA, _providers.CPU]


def get_device() -> str:
    """ "GPU" where a session by default would run on one."""
    from ._core import Model, compile, session

    model = Model.parse('<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }')
    try:
        session(compile(model), device="cuda", threads=1, memory_limit=0, tf32=False, exact_products=False,
                exact_masks=False, kept_shapes=1, kernel_cache="on", kernel_cache_folder="", tune=False)
    except UserError:
        return "CPU"
    return "GPU"


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs every operator on its own; all others fuse."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Without effect: steps run in order, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def set_default_logger_severity(severity: int) -> None:
    """Without effect: RedFuser writes no log."""


class SessionOptions:
    """Of ONNX Runtime's: those with an effect here; the others may be set and have none."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Without effect."""


class RunOptions:
    """For scripts that make one; without effect."""


class NodeArg:
    """An input or output: name, type ("tensor(float)"), shape (numbers, and names of open sizes) and, of what the
    file declares as maps by class, the classes of the columns."""

    def __init__(self, info: ValueInfo) -> None:
        self.name = info.name
        self.shape = info.shape if info.shape is not None else []
        self.type = type_name(info.dtype)
        self.classes = info.classes

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class InferenceSession:
    """Loads, compiles and runs a model, given as a path, bytes or a ModelProto.

    `providers` are names, or pairs of a name and options, in order of preference: "CUDAExecutionProvider",
    "CPUExecutionProvider", or a device of Session. With both of the former, or without any, a GPU is taken where
    one can run the model; with CUDA alone its absence is an error. docs/python.md lists the options.
    """

    def __init__(self, path_or_bytes: typing.Any, sess_options: SessionOptions | None = None,
                 providers: typing.Sequence[typing.Any] | None = None,
                 provider_options: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None,
                 **unused: typing.Any) -> None:
        for name in unused:
            if name != "disabled_optimizers":
                raise UserError(f'InferenceSession has no argument "{name}"')
        settings = sess_options or SessionOptions()
        device, options, self._providers = _providers.parse(providers, provider_options)
        fuse = settings.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
        self._options = options
        self._settings = settings
        self.session = Session(compile(path_or_bytes, fuse=fuse), device=device,
                               threads=settings.intra_op_num_threads, **options)
        self._output_names = [info.name for info in self.session.outputs]

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self.session.inputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with an initializer, which a run may leave out."""
        return [NodeArg(info) for info in self.session.program.model.overridable]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self.session.outputs]

    def get_providers(self) -> list[str]:
        return [_providers.CUDA, _providers.CPU] if self.session.on_gpu else [_providers.CPU]

    def get_provider_options(self) -> dict[str, dict[str, typing.Any]]:
        return {name: self._options if name == _providers.CUDA else {} for name in self.get_providers()}

    def get_session_options(self) -> SessionOptions:
        return self._settings

    def run(self, output_names: typing.Sequence[str] | None, input_feed: typing.Mapping[str, typing.Any],
            run_options: RunOptions | None = None) -> list[typing.Any]:
        """The outputs of these names (None: all, in the model's order) as NumPy arrays; sequences as lists."""
        names = self._names(output_names)
        outputs = self.session.run(input_feed)
        return [to_numpy(self.session._core.to_host(outputs[name])) for name in names]

    def run_with_ort_values(self, output_names: typing.Sequence[str] | None,
                            input_dict_ort_values: typing.Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        names = self._names(output_names)
        outputs = self.session.run({name: value._on(self.session) for name, value in input_dict_ort_values.items()})
        return [OrtValue(outputs[name]) for name in names]

    def io_binding(self) -> IOBinding:
        return IOBinding(self.session)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run()

    def _names(self, wanted: typing.Sequence[str] | None) -> list[str]:
        for name in wanted or []:
            if name not in self._output_names:
                close = _providers.did_you_mean(name, self._output_names)
                raise UserError(f'the model has no output "{name}"{close}')
        return list(wanted) if wanted else self._output_names
