"""SessionOptions, RunOptions and the like, with the names of ONNX Runtime's."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import operator
import os
import typing

import numpy as np

from ._core import ModelDescription, RunControl, UserError
from .providers import did_you_mean


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


class ExecutionOrder(enum.IntEnum):
    """Without effect, likewise."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _paired(what: str, names: typing.Sequence[typing.Any], values: typing.Sequence[typing.Any],
            ) -> typing.Iterator[tuple[typing.Any, typing.Any]]:
    if len(names) != len(values):
        raise UserError(f"{len(names)} names, but {len(values)} {what}")
    return zip(names, values)


class _Settings:
    """Attributes with defaults, and entries, which have no effect. AttributeError for another name, TypeError for a
    value of another type, UserError for an entry that is not there."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    _entries: dict[str, str]

    def __init__(self) -> None:
        self._entries = {}

    def __setattr__(self, name: str, value: typing.Any) -> None:
        names = [each for part in type(self).__mro__ for each in inspect.get_annotations(part)]
        known = [each for each in names if not each.startswith("_")]
        if name not in names and not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f'{type(self).__name__} has no attribute "{name}"{did_you_mean(name, known)}')
        if name in known:
            wanted = int if isinstance(getattr(type(self), name), int) else str
            try:
                value = operator.index(value) if wanted is int else os.fspath(value)
            except TypeError:
                raise TypeError(f"{type(self).__name__}.{name} is {value!r}, but takes a value of type "
                                f"{wanted.__name__}") from None
        object.__setattr__(self, name, value)

    def _add_entry(self, key: str, value: str) -> None:
        """Without effect."""
        self._entries[key] = value

    def _get_entry(self, key: str) -> str:
        if key not in self._entries:
            raise UserError(f'{type(self).__name__} has no entry "{key}"{did_you_mean(key, self._entries)}')
        return self._entries[key]


class SessionOptions(_Settings):
    """The first group has an effect; the others may be set and have none. Initializers and sizes that are added take
    the place of what a file has; their memory must stay unchanged."""

    intra_op_num_threads: int = 0
    graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
    enable_profiling: bool = False
    profile_file_prefix: str = "redfuser_profile"
    optimized_model_filepath: str = ""

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
    execution_order: int = ExecutionOrder.DEFAULT
    inter_op_num_threads: int = 0
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    _weights: dict[str, typing.Any]
    _files: dict[str, typing.Any]
    _sizes: dict[str, int]
    _denoted_sizes: dict[str, int]
    _providers: list[tuple[str, dict[str, str]]]

    def __init__(self) -> None:
        super().__init__()
        self._weights, self._files, self._sizes, self._denoted_sizes, self._providers = {}, {}, {}, {}, []

    add_session_config_entry = _Settings._add_entry
    get_session_config_entry = _Settings._get_entry

    def add_initializer(self, name: str, ort_value: typing.Any) -> None:
        """A session then has this tensor in place of the initializer's data, which need not be there. The session
        refuses a name that no initializer has, and another type or shape."""
        if name in self._weights:
            raise UserError(f'SessionOptions has an initializer "{name}" already')
        self._weights[name] = ort_value

    def add_external_initializers(self, names: typing.Sequence[str], ort_values: typing.Sequence[typing.Any]) -> None:
        """add_initializer for each."""
        for name, value in _paired("external initializers", names, ort_values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
            self, names: typing.Sequence[str], buffers: typing.Sequence[typing.Any],
            lengths: typing.Sequence[int]) -> None:
        """The contents of files of external data, by the location that the model names: the first bytes, as many as
        `lengths` has, of what has the buffer protocol. The session refuses a location that no initializer has."""
        for (name, buffer), length in _paired("lengths", list(_paired("buffers", names, buffers)), lengths):
            held = memoryview(buffer).cast("B")
            if not 0 <= length <= len(held):
                raise UserError(f'the buffer for "{name}" has {len(held)} bytes, not {length}')
            self._files[name] = np.frombuffer(held[:length], np.uint8)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The size of the inputs' open dimensions of this name; without effect where there is none."""
        self._sizes[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Likewise, by what the file says that a dimension means, such as "DATA_BATCH"."""
        self._denoted_sizes[denotation] = operator.index(size)

    def add_provider(self, provider_name: str, provider_options: typing.Mapping[str, str] | None = None) -> None:
        """The providers of a session that is given none."""
        self._providers.append((provider_name, dict(provider_options or {})))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        raise UserError(f"{path}: operators of ONNX Runtime's custom libraries do not run here; give the model a local "
                        "function of their domain and name")


class RunOptions(_Settings):
    """`terminate` ends the runs that were given these options, from any thread; the others have no effect."""

    only_execute_path_to_fetches: bool = False
    _control: RunControl

    def __init__(self) -> None:
        super().__init__()
        self._control = RunControl()

    add_run_config_entry = _Settings._add_entry
    get_run_config_entry = _Settings._get_entry

    @property
    def terminate(self) -> bool:
        return self._control.terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._control.terminate = bool(value)


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """What a file says of itself."""

    custom_metadata_map: dict[str, str]
    description: str
    domain: str
    graph_description: str
    graph_name: str
    producer_name: str
    version: int

    @staticmethod
    def of(found: ModelDescription) -> ModelMetadata:
        return ModelMetadata(found.metadata, found.doc_string, found.domain, found.graph_doc_string, found.graph_name,
                             found.producer_name, found.model_version)


def _without_effect(*_: typing.Any, **__: typing.Any) -> None:
    """Without effect: RedFuser writes no log, sends nothing, finds NVIDIA's libraries by itself, and has threads by
    session."""


set_default_logger_severity = set_default_logger_verbosity = set_global_thread_pool_sizes = _without_effect
disable_telemetry_events = enable_telemetry_events = preload_dlls = _without_effect
