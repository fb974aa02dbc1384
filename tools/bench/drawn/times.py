"""PyTorch's results and times of drawn graphs (draw.py).

    python tools/bench/drawn/times.py FOLDER prepare [--part 0/1] [--device cuda]
    python tools/bench/drawn/times.py FOLDER compile [--part 0/1]
    python tools/bench/drawn/times.py FOLDER time --json FILE

`prepare` writes inputs.npz, outputs.npz and weights.bin, as `redfuser-bench --suite e2e --models FOLDER` reads them;
`compile` fills the caches of torch.compile, part by part in processes beside each other; `time` takes the median
device time of the compiled and of the eager function, with a cold second-level cache, in a CUDA graph where it can be
recorded. A graph that PyTorch cannot compute is named with its error.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

from program import Program

FLUSHED = 256 << 20  # bytes, more than any second-level cache
BUDGET_S = 0.1
MOST_RUNS, LEAST_RUNS = 100, 10


def as_numpy(tensor):
    tensor = tensor.cpu()
    if tensor.dtype == torch.bfloat16:  # NumPy has no such type: two bytes each
        return tensor.view(torch.int16).numpy().view("V2")
    return tensor.numpy()


def bytes_of(tensor):
    return tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes()


def prepare(program, arguments):
    feed = {}
    with open(program.folder / "weights.bin", "wb") as file:
        for (name, *_), value in zip(program.inputs, arguments):
            if name in program.weights:
                file.seek(program.weights[name])
                file.write(bytes_of(value))
            else:
                feed[name] = as_numpy(value)
    results = program(*arguments)
    np.savez(program.folder / "inputs.npz", **feed)
    np.savez(program.folder / "outputs.npz", **dict(zip(program.outputs, map(as_numpy, results))))


def replayed(function):
    """The function recorded as a CUDA graph, or as it is where it cannot be recorded."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        return graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
        return function


def device_us(function, flushed):
    run = replayed(function)
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    runs = int(BUDGET_S / max(time.perf_counter() - start, 1e-5))
    events = []
    for _ in range(max(LEAST_RUNS, min(MOST_RUNS, runs))):
        flushed.zero_()
        events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
        events[-1][0].record()
        run()
        events[-1][1].record()
    torch.cuda.synchronize()
    return 1e3 * statistics.median(start.elapsed_time(end) for start, end in events)


def time_one(program, arguments, flushed):
    torch._dynamo.reset()
    compiled = torch.compile(program, dynamic=False)
    return {"name": program.folder.name,
            "compiled_us": round(device_us(lambda: compiled(*arguments), flushed), 2),
            "eager_us": round(device_us(lambda: program(*arguments), flushed), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("what", choices=["prepare", "compile", "time"])
    parser.add_argument("--part", default="0/1", help="which of how many equal parts of the graphs")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    folders = sorted(path.parent for path in pathlib.Path(arguments.folder).glob("*/graph.json"))[part::parts]
    flushed = torch.empty(FLUSHED if arguments.what == "time" else 0, dtype=torch.int8, device=arguments.device)
    rows, failed = [], 0
    for folder in folders:
        try:
            program = Program(folder, arguments.device)
            values = program.draw(torch.Generator(arguments.device).manual_seed(0))
            if arguments.what == "prepare":
                prepare(program, values)
            elif arguments.what == "compile":
                torch._dynamo.reset()
                torch.compile(program, dynamic=False)(*values)
            else:
                rows.append(time_one(program, values, flushed))
                print(rows[-1], flush=True)
        except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:
            failed += 1
            print(f"{folder.name}: {str(error).splitlines()[0]}", file=sys.stderr)
    if arguments.json:
        device = torch.cuda.get_device_name()
        result = {"device": device, "versions": {"torch": torch.__version__}, "rows": rows}
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
