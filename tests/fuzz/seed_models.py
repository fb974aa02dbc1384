"""Small models to start a fuzzer from: ONNX's own node tests.

    python seed_models.py FOLDER
"""

import pathlib
import sys

import onnx.backend.test

LARGEST = 1200  # bytes: small models run fast


def main():
    folder = pathlib.Path(sys.argv[1])
    data = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    count = 0
    for path in sorted(data.rglob("model.onnx")):
        if path.stat().st_size <= LARGEST:
            name = f"{path.parent.parent.name}.{path.parent.name}"
            (folder / name).write_bytes(path.read_bytes())
            count += 1
    print(f"{count} models in {folder}")


if __name__ == "__main__":
    main()
