"""Execution providers as ONNX Runtime names them, and their options, as options of a Session."""

from __future__ import annotations

import difflib
import typing
import warnings

from ._core import UserError

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
DEVICES = {CPU: "cpu", CUDA: "cuda", "cpu": "cpu", "cuda": "cuda", "auto": "auto", "reference": "reference"}
# Of ONNX Runtime, for other hardware or through other libraries: passed over with a warning.
FOREIGN = ["TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider", "ROCMExecutionProvider",
           "MIGraphXExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider", "DmlExecutionProvider",
           "CoreMLExecutionProvider", "XnnpackExecutionProvider", "QNNExecutionProvider", "WebGpuExecutionProvider",
           "AzureExecutionProvider"]


def truth(value: typing.Any) -> bool:
    return str(value).lower() in ("1", "true")


Known = typing.Dict[str, typing.Tuple[str, typing.Callable[[typing.Any], typing.Any]]]
# Option -> the Session's option and its type.
OWN: Known = {
    "tf32": ("tf32", truth), "exact_products": ("exact_products", truth), "exact_masks": ("exact_masks", truth),
    "kept_shapes": ("kept_shapes", int), "kernel_cache": ("kernel_cache", str),
    "kernel_cache_folder": ("kernel_cache_folder", str), "tune": ("tune", truth),
    "memory_limit": ("memory_limit", int), "use_tf32": ("tf32", truth), "gpu_mem_limit": ("memory_limit", int),
}
OPTIONS: dict[str, Known] = {
    CPU: {"memory_limit": OWN["memory_limit"]},
    CUDA: OWN,
}
# Of ONNX Runtime's providers, without a counterpart: they choose algorithms and allocators.
WITHOUT_EFFECT = {
    CPU: ["arena_extend_strategy", "use_arena"],
    CUDA: ["arena_extend_strategy", "cudnn_conv_algo_search", "cudnn_conv_use_max_workspace",
           "cudnn_conv1d_pad_to_nc1d", "do_copy_in_default_stream", "enable_cuda_graph",
           "enable_skip_layer_norm_strict_mode", "fuse_conv_bias", "prefer_nhwc", "sdpa_kernel",
           "tunable_op_enable", "tunable_op_tuning_enable", "use_ep_level_unified_stream"],
}


def did_you_mean(name: str, candidates: typing.Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(candidates), 1)
    return f'; did you mean "{close[0]}"?' if close else ""


def session_options(provider: str, options: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """The Session's options that a provider's are. UserError for an unknown name or a wrong value."""
    known = OPTIONS[CPU if provider in (CPU, "cpu", "reference") else CUDA]
    ignored = WITHOUT_EFFECT[CPU if known is OPTIONS[CPU] else CUDA]
    found = {}
    for name, value in options.items():
        if name == "device_id":
            if str(value) != "0":
                raise UserError(f"{provider}: device_id is {value}, but sessions use GPU 0, the first visible one: "
                                "choose it by CUDA_VISIBLE_DEVICES")
        elif name in known:
            ours, convert = known[name]
            try:
                found[ours] = convert(value)
            except ValueError:
                raise UserError(f"{provider}: option {name} cannot be {value!r}") from None
        elif name not in ignored:
            raise UserError(f'{provider} has no option "{name}"{did_you_mean(name, [*known, *ignored, "device_id"])}')
    return found


def parse(providers: typing.Sequence[typing.Any] | None,
          provider_options: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None,
          ) -> tuple[str, dict[str, typing.Any], list[str]]:
    """The Session's device and options for a list of providers, each a name or a pair of it and its options, in
    order of preference; and the names that are taken."""
    if providers is None:
        return "auto", {}, [CUDA, CPU]
    if isinstance(providers, str):
        providers = [providers]
    names: list[str] = []
    options: dict[str, typing.Any] = {}
    given = list(provider_options or [{}] * len(providers))
    if len(given) != len(providers):
        raise UserError(f"{len(providers)} providers, but {len(given)} provider_options")
    for entry, more in zip(providers, given):
        name, own = (entry, {}) if isinstance(entry, str) else entry
        if name in FOREIGN:
            warnings.warn(f"redfuser has no {name}; the next provider is taken", stacklevel=3)
            continue
        if name not in DEVICES:
            raise UserError(f'there is no provider "{name}"{did_you_mean(name, [*DEVICES, *FOREIGN])}')
        names.append(name)
        for option, value in session_options(name, {**own, **more}).items():
            options.setdefault(option, value)
    devices = list(dict.fromkeys(DEVICES[name] for name in names)) or ["cpu"]
    if devices[0] == "cuda" and "cpu" in devices:
        return "auto", options, names
    return devices[0], options, names
