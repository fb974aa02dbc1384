"""Runs an ONNX model in ONNX Runtime with RedFuser's execution provider, on made-up inputs.

    pip install onnxruntime onnxruntime-ep-redfuser
    python run_in_onnxruntime.py model.onnx
"""

import sys

import numpy as np
import onnxruntime
import onnxruntime_ep_redfuser as redfuser_ep

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def made_up(info, generator):
    """Numbers of the input's type; open sizes are 4."""
    shape = [size if isinstance(size, int) else 4 for size in info.shape]
    if info.type in TYPES:
        return generator.standard_normal(shape).astype(TYPES[info.type])
    return generator.integers(0, 2, shape).astype(info.type.removeprefix("tensor(").removesuffix(")"))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: run_in_onnxruntime.py MODEL")
    name = redfuser_ep.get_ep_name()
    onnxruntime.register_execution_provider_library(name, redfuser_ep.get_library_path())
    options = onnxruntime.SessionOptions()
    # By devices, which every version of ONNX Runtime takes.
    options.add_provider_for_devices([device for device in onnxruntime.get_ep_devices() if device.ep_name == name], {})
    session = onnxruntime.InferenceSession(sys.argv[1], options, enable_fallback=False)
    generator = np.random.default_rng(1)
    outputs = session.run(None, {info.name: made_up(info, generator) for info in session.get_inputs()})
    print(f"providers: {', '.join(session.get_providers())}")
    for info, value in zip(session.get_outputs(), outputs):
        print(f"{info.name} {value.dtype}{list(value.shape)}")


if __name__ == "__main__":
    main()
