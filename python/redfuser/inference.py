"""InferenceSession, with the interface of ONNX Runtime's, so that a script changes one import."""

from __future__ import annotations

import datetime
import pathlib
import threading
import time
import typing

from . import providers as _providers
from ._core import RunControl, UserError, ValueInfo, save_optimized
from .ort_options import GraphOptimizationLevel, ModelMetadata, RunOptions, SessionOptions
from .ort_values import IOBinding, OrtValue
from .programs import compile, load
from .sessions import Session
from .tensors import to_numpy, type_name


def get_available_providers() -> list[str]:
    return [_providers.CUDA, _providers.CPU]


get_all_providers = get_available_providers


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


class NodeArg:
    """An input or output: name, type ("tensor(float)"), shape (numbers, the file's names of open sizes, and None for
    those without) and, of what the file declares as maps by class, the classes of the columns."""

    def __init__(self, info: ValueInfo) -> None:
        self.name = info.name
        self.shape = info.declared_shape or []
        self.type = type_name(info.dtype)
        self.classes = info.classes

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _control(options: RunOptions | None) -> RunControl | None:
    return options._control if options is not None else None


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
            if name not in WITHOUT_EFFECT:
                raise UserError(f'InferenceSession has no argument "{name}"{_providers.did_you_mean(name, ARGUMENTS)}')
        self._settings = sess_options or SessionOptions()
        fuse = self._settings.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
        device = _providers.parse(self._settings._providers or None if providers is None else providers,
                                  provider_options)
        model = load(path_or_bytes, weights=self._settings._weights, files=self._settings._files,
                     sizes=self._settings._sizes, denoted_sizes=self._settings._denoted_sizes)
        self._program = compile(model, fuse=fuse)
        if self._settings.optimized_model_filepath:
            save_optimized(self._program.model, self._program._core, self._settings.optimized_model_filepath)
        self._output_names = [info.name for info in self._program.outputs]
        self._open(*device)

    def _open(self, device: str, options: dict[str, typing.Any], names: list[str]) -> None:
        self.session = Session(self._program, device=device, threads=self._settings.intra_op_num_threads, **options)
        self._options, self._providers = options, names
        self._profiled_since = time.monotonic_ns()
        if self._settings.enable_profiling:
            self.session._core.start_profile()

    def set_providers(self, providers: typing.Sequence[typing.Any] | None = None,
                      provider_options: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None) -> None:
        """Later runs are on a new session with these. Bindings of the one before stay with that."""
        self._open(*_providers.parse(providers, provider_options))

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self.session.inputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with an initializer, which a run may leave out."""
        return [NodeArg(info) for info in self.session.program.model.overridable]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self.session.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata.of(self._program.model.description)

    def get_providers(self) -> list[str]:
        return [_providers.CUDA, _providers.CPU] if self.session.on_gpu else [_providers.CPU]

    def get_provider_options(self) -> dict[str, dict[str, typing.Any]]:
        return {name: self._options if name == _providers.CUDA else {} for name in self.get_providers()}

    def get_session_options(self) -> SessionOptions:
        return self._settings

    def enable_fallback(self) -> None:
        """Without effect: a session has the device that it was made for."""

    def disable_fallback(self) -> None:
        """Without effect, likewise."""

    def get_profiling_start_time_ns(self) -> int:
        return self._profiled_since

    def end_profiling(self) -> str:
        """Writes the times of the steps of all runs, which SessionOptions.enable_profiling keeps, and returns the
        file's name. chrome://tracing opens it."""
        text = self.session._core.end_profile()
        now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
        path = pathlib.Path(f"{self._settings.profile_file_prefix}_{now}.json")
        path.write_text(text)
        return str(path)

    def run(self, output_names: typing.Sequence[str] | None, input_feed: typing.Mapping[str, typing.Any],
            run_options: RunOptions | None = None) -> list[typing.Any]:
        """The outputs of these names (None: all, in the model's order) as NumPy arrays; sequences as lists."""
        names = self._names(output_names)
        outputs = self.session._run(input_feed, control=_control(run_options))
        return [to_numpy(self.session._core.to_host(outputs[name])) for name in names]

    def run_async(self, output_names: typing.Sequence[str] | None, input_feed: typing.Mapping[str, typing.Any],
                  callback: typing.Callable[[list[typing.Any], typing.Any, str], typing.Any], user_data: typing.Any,
                  run_options: RunOptions | None = None) -> None:
        """As run, in a thread of its own, which calls callback(outputs, user_data, error): the outputs, or an error
        that is not empty."""
        def work() -> None:
            found, problem = [], ""
            try:
                found = self.run(output_names, input_feed, run_options)
            except Exception as error:
                problem = str(error) or type(error).__name__
            callback(found, user_data, problem)

        threading.Thread(target=work, name="redfuser.run_async").start()

    def run_with_ort_values(self, output_names: typing.Sequence[str] | None,
                            input_dict_ort_values: typing.Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        names = self._names(output_names)
        inputs = {name: value._on(self.session) for name, value in input_dict_ort_values.items()}
        outputs = self.session._run(inputs, control=_control(run_options))
        return [OrtValue(outputs[name]) for name in names]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def create_ortvalue_from_shape_and_type(self, shape: typing.Sequence[int], element_type: typing.Any,
                                            device_type: str, device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run(_control(run_options))

    def _names(self, wanted: typing.Sequence[str] | None) -> list[str]:
        for name in wanted or []:
            if name not in self._output_names:
                close = _providers.did_you_mean(name, self._output_names)
                raise UserError(f'the model has no output "{name}"{close}')
        return list(wanted) if wanted else self._output_names


# Arguments of ONNX Runtime's that change nothing here.
WITHOUT_EFFECT = ["disabled_optimizers", "enable_fallback", "read_config_from_model"]
ARGUMENTS = ["path_or_bytes", "sess_options", "providers", "provider_options", *WITHOUT_EFFECT]
