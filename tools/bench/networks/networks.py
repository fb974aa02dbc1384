"""Networks of real sizes in fp16, exported by PyTorch and run by redfuser-run, beside PyTorch eager.

    python tools/bench/networks/networks.py FOLDER export [--part 0/1] [--only NAME,...]
    python tools/bench/networks/networks.py FOLDER time --run build/redfuser-run --json FILE

`export` writes NAME.onnx, inputs and PyTorch's results in fp32 on the same weights, part by part in processes beside
each other. `time` takes the median device time of resident runs, and for PyTorch the time in which its kernels are
busy, with no gap between them counted; beside them the host's time of a run, which counts where sizes depend on data
and both wait for the host. Errors are norms of differences from fp32 by the norm of the result. A network
that cannot be exported or run is named with its error. Needs a GPU, torch, transformers, torchvision, timm,
onnxscript, scipy.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import torch

from table import NETWORKS

WARM_RUNS, TIMED_RUNS = 2, 3  # of PyTorch
RUN_S = 120


class Flat(torch.nn.Module):
    """The network with its first two floating-point results as a tuple."""

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names = module, names
        self.by_name = hasattr(module, "config")

    def forward(self, *inputs):
        found = []

        def collect(value):
            if isinstance(value, torch.Tensor):
                if value.dtype.is_floating_point:
                    found.append(value)
            elif isinstance(value, dict):
                collect(tuple(value.values()))
            elif isinstance(value, (list, tuple)):
                for each in value:
                    collect(each)
            elif hasattr(value, "to_tuple"):
                collect(value.to_tuple())

        collect(self.module(**dict(zip(self.names, inputs))) if self.by_name else self.module(*inputs))
        return tuple(found[:2])


def build(name, device):
    torch.manual_seed(1)
    network = NETWORKS[name]
    with torch.device(device):
        module = network.make()
    if hasattr(getattr(module, "config", None), "use_cache"):
        module.config.use_cache = False
    tensors = {key: value(device) for key, value in network.inputs.items()}
    module = module.to(device, torch.float16 if network.half else torch.float32)
    return Flat(module, list(tensors)).eval(), tensors


def write_model(network, tensors, outputs, path, traced):
    names = {"input_names": list(tensors), "output_names": [f"y{i}" for i in range(outputs)]}
    with contextlib.redirect_stdout(io.StringIO()):
        if traced:
            torch.onnx.export(network, tuple(tensors.values()), path, dynamo=False, opset_version=17, **names)
            return
        torch.onnx.export(network, tuple(tensors.values()), path, dynamo=True, external_data=True, optimize=True,
                          verbose=False, opset_version=20, **names)


def norm_error(got, expected):
    got, expected = (np.asarray(x, np.float64) for x in (got, expected))
    return float(np.linalg.norm(got - expected) / (np.linalg.norm(expected) + 1e-30))


def export(name, folder, device):
    network, tensors = build(name, device)
    with torch.no_grad():
        half = [y.float().cpu().numpy() for y in network(*tensors.values())]
        write_model(network, tensors, len(half), folder / f"{name}.onnx", NETWORKS[name].traced)
        floats = [x.float() if x.is_floating_point() else x for x in tensors.values()]
        exact = [y.cpu().numpy() for y in network.float()(*floats)]
    np.savez(folder / f"{name}.inputs.npz", **{key: x.cpu().numpy() for key, x in tensors.items()})
    np.savez(folder / f"{name}.outputs.npz", **{f"y{i}": y for i, y in enumerate(exact)})
    return max(norm_error(a, b) for a, b in zip(half, exact))


def busy_us(function):
    from torch.profiler import ProfilerActivity, profile

    for _ in range(WARM_RUNS):
        function()
    torch.cuda.synchronize()
    sums = []
    for _ in range(TIMED_RUNS):
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            function()
            torch.cuda.synchronize()
        on_device = [e for e in profiled.events() if e.device_type.name == "CUDA"]
        sums.append(sum(e.time_range.elapsed_us() for e in on_device))
    return round(sorted(sums)[len(sums) // 2], 1)


def wall_us(function):
    spans = []
    for _ in range(TIMED_RUNS):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        spans.append((time.perf_counter() - start) * 1e6)
    return round(sorted(spans)[len(spans) // 2], 1)


def ours(name, folder, run):
    with tempfile.TemporaryDirectory() as scratch:
        result, outputs = pathlib.Path(scratch, "run.json"), pathlib.Path(scratch, "outputs.npz")
        command = [run, folder / f"{name}.onnx", "--inputs", folder / f"{name}.inputs.npz", "--device", "cuda",
                   "--resident", "--warmup", "3", "--iterations", "15", "--json", result, "--outputs", outputs]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=RUN_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        expected = np.load(folder / f"{name}.outputs.npz")
        got = np.load(outputs)
        times = json.loads(result.read_text())["time"]
        return {"us": round(times["compute_ms"]["median"] * 1e3, 1),
                "wall_us": round(times["wall_ms"]["median"] * 1e3, 1),
                "error": max(norm_error(got[key], expected[key]) for key in expected.files)}


def time_network(name, folder, run, device):
    row = {"name": name, **json.loads((folder / f"{name}.json").read_text()), **ours(name, folder, run)}
    network, tensors = build(name, device)
    with torch.no_grad():
        row["torch_us"] = busy_us(lambda: network(*tensors.values()))
        row["torch_wall_us"] = wall_us(lambda: network(*tensors.values()))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("action", choices=["export", "time"])
    parser.add_argument("--part", default="0/1", help="this part of so many")
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--run", default="build/redfuser-run")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    options.folder.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, options.part.split("/"))
    rows = []
    for name in options.only.split(",")[part::parts]:
        try:
            if options.action == "export":
                error = export(name, options.folder, options.device)
                (options.folder / f"{name}.json").write_text(json.dumps({"torch_error": error}))
                print(name, "exported", flush=True)
            elif (options.folder / f"{name}.json").exists():
                rows.append(time_network(name, options.folder, options.run, options.device))
                print(rows[-1], flush=True)
        except Exception as error:  # any library's; the next network may work
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"device": torch.cuda.get_device_name(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
