"""SessionOptions, RunOptions and the like, with the names of ONNX Runtime's."""

from __future__ import annotations

import dataclasses
import enum
import operator
import os
import typing

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


class _Settings:
    """Attributes with defaults. AttributeError for another name, TypeError for a value of another type."""

    def __setattr__(self, name: str, value: typing.Any) -> None:
        known = [each for each in self.__annotations__ if not each.startswith("_")]
        if name not in self.__annotations__ and not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f'{type(self).__name__} has no attribute "{name}"{did_you_mean(name, known)}')
        if name in known:
            wanted = int if isinstance(getattr(type(self), name), int) else str
            try:
                value = operator.index(value) if wanted is int else os.fspath(value)
            except TypeError:
                raise TypeError(f"{type(self).__name__}.{name} is {value!r}, but takes a value of type "
                                f"{wanted.__name__}") from None
        object.__setattr__(self, name, value)


class SessionOptions(_Settings):
    """The first group has an effect; the others may be set and have none."""

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
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    _entries: dict[str, str]

    def __init__(self) -> None:
        self._entries = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Without effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise UserError(f'the session options have no entry "{key}"{did_you_mean(key, self._entries)}')
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Without effect: a program serves every size."""

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Without effect, likewise."""

    def register_custom_ops_library(self, path: str) -> None:
        raise UserError(f"{path}: operators of ONNX Runtime's custom libraries do not run here; give the model a local "
                        "function of their domain and name")


class RunOptions(_Settings):
    """`terminate` ends the runs that were given these options, from any thread; the others have no effect."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    _control: RunControl
    _entries: dict[str, str]

    def __init__(self) -> None:
        self._control = RunControl()
        self._entries = {}

    @property
    def terminate(self) -> bool:
        return self._control.terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._control.terminate = bool(value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Without effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise UserError(f'the run options have no entry "{key}"{did_you_mean(key, self._entries)}')
        return self._entries[key]


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
    """Without effect: RedFuser writes no log, sends nothing, and finds NVIDIA's libraries by itself."""


set_default_logger_severity = set_default_logger_verbosity = _without_effect
disable_telemetry_events = enable_telemetry_events = preload_dlls = _without_effect
