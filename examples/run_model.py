"""Runs an ONNX model on made-up inputs, prints what comes out, and says what was fused.

    pip install redfuser
    python run_model.py model.onnx
"""

import sys

import numpy as np

import redfuser


def made_up(info, generator):
    """Numbers of the input's type; open sizes are 4."""
    shape = [size if isinstance(size, int) else 4 for size in info.shape]
    if info.dtype.startswith("float"):
        return generator.standard_normal(shape).astype(info.dtype)
    return generator.integers(0, 2, shape).astype(info.dtype)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: run_model.py MODEL")
    try:
        # A program serves every shape and may be shared by threads; a session belongs to one thread.
        program = redfuser.compile(sys.argv[1])
        session = redfuser.Session(program)
        generator = np.random.default_rng(1)
        outputs = session.run({info.name: made_up(info, generator) for info in session.inputs})
    except redfuser.Error as error:
        sys.exit(f"error: {error}")
    for name, tensor in outputs.items():
        print(f"{name} {tensor.dtype}{list(tensor.shape)} on {tensor.device}")
    for region in program.explain()["fused"]:
        print(f"fused as {region['class']}: {', '.join(region['nodes'])}")


if __name__ == "__main__":
    main()
