"""Sends a request of made-up inputs to a model that redfuser-serve serves, and prints what comes back.

    redfuser-serve DIR
    python ask_server.py http://127.0.0.1:8000 NAME
"""

import sys
import urllib.parse

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, triton_to_np_dtype


def made_up(info, generator):
    """Numbers of the input's type; open sizes are 4."""
    shape = [size if size >= 0 else 4 for size in info["shape"]]
    dtype = np.dtype(triton_to_np_dtype(info["datatype"]))
    numbers = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 2, shape)
    tensor = triton.InferInput(info["name"], shape, info["datatype"])
    tensor.set_data_from_numpy(numbers.astype(dtype))
    return tensor


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: ask_server.py URL MODEL")
    try:
        client = triton.InferenceServerClient(urllib.parse.urlparse(sys.argv[1]).netloc)
        generator = np.random.default_rng(1)
        described = client.get_model_metadata(sys.argv[2])
        result = client.infer(sys.argv[2], [made_up(info, generator) for info in described["inputs"]])
    except (InferenceServerException, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{described['name']} version {described['versions'][0]} on {described['device']}")
    for info in described["outputs"]:
        print(f"{info['name']} {info['datatype']}{list(result.as_numpy(info['name']).shape)}")


if __name__ == "__main__":
    main()
