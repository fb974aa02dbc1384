"""A folder of models:

    DIR/NAME.onnx            with external data in files that begin with "NAME.onnx"
    DIR/NAME/model.onnx
    DIR/NAME/3/model.onnx    as Triton has it; the highest number is served

and, in the folder NAME or beside the file as NAME.toml, options (options.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pathlib
import re
import shutil
import tempfile
import time
import typing

from .._core import UserError
from ..providers import did_you_mean

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
ATTEMPTS, PAUSE_S = 10, 0.2  # at a copy of files that change


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model of the folder: the files of the served version, and the file of its options (which may be absent)."""

    name: str
    version: str
    model: pathlib.Path
    files: tuple[pathlib.Path, ...]
    options: pathlib.Path

    def stamp(self) -> str:
        """Another text after any change of a file."""
        parts = [self.version]
        for path in (*self.files, self.options):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                parts.append(f"{path} {status.st_ino} {status.st_size} {status.st_mtime_ns}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @contextlib.contextmanager
    def snapshot(self) -> typing.Iterator[pathlib.Path]:
        """The model file in a copy of the files that no other version has a part in. What is mapped from the copy
        stays valid; the copy has gone afterwards. UserError if the files keep changing."""
        for _ in range(ATTEMPTS):
            before = self.stamp()
            with tempfile.TemporaryDirectory(prefix="redfuser-serve-") as folder:
                with contextlib.suppress(FileNotFoundError):
                    for path in self.files:
                        copy = pathlib.Path(folder, path.relative_to(self.model.parent))
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(path, copy)
                    if self.stamp() == before:
                        yield pathlib.Path(folder, self.model.name)
                        return
            time.sleep(PAUSE_S)
        raise UserError(f"{self.model}: the files change while they are read")


class Repository:
    """The models of a folder, as they are now."""

    def __init__(self, folder: str) -> None:
        self.folder = pathlib.Path(folder).resolve()
        if not self.folder.is_dir():
            raise UserError(f"{folder} is not a folder")

    def names(self) -> list[str]:
        """Of all files *.onnx and folders but hidden ones."""
        found = [path.stem for path in self.folder.glob("*.onnx")]
        found += [path.name for path in self.folder.iterdir() if path.is_dir()]
        return sorted({name for name in found if not name.startswith(".")})

    def entry(self, name: str) -> Entry:
        """UserError for a name without a model, with two, or that is not of letters, digits, "_", "-" and "."."""
        folder, file = self.folder / name, self.folder / f"{name}.onnx"
        if name not in self.names():
            raise UserError(f'there is no model "{name}"{did_you_mean(name, self.names())}')
        if not NAME.fullmatch(name):
            raise UserError(f'the model\'s name "{name}" has other characters than letters, digits, "_", "-" and "."')
        if folder.is_dir() and file.exists():
            raise UserError(f"{file} and {folder} are two models of one name")
        if file.exists():
            files = sorted(path for path in self.folder.glob(f"{name}.onnx*") if path.is_file())
            return Entry(name, "1", file, tuple(files), self.folder / f"{name}.toml")
        version, home = "1", folder
        if not (folder / "model.onnx").exists():
            numbers = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]
            if not numbers:
                raise UserError(f"{folder} has neither model.onnx nor a version such as 1/model.onnx")
            version = str(max(numbers))
            home = folder / version
            if not (home / "model.onnx").exists():
                raise UserError(f"{home} has no model.onnx")
        options = folder / "redfuser.toml"
        files = sorted(path for path in home.rglob("*") if path.is_file() and path != options)
        return Entry(name, version, home / "model.onnx", tuple(files), options)
