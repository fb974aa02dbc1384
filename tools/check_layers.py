"""Checks that every file includes only from the rooms below its own."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Room -> the rooms that it may include directly; what those may include comes with them.
BELOW = {
    "base": [],
    "ir": ["base"],
    "ops": ["ir"],
    "onnx": ["ops"],
    "cascade": ["ir"],
    "plan": ["cascade", "ops"],
    "cpu": ["ops", "plan"],
    "passes": ["cpu", "ops"],
    "codegen": ["plan"],
    "device": [],
    "cuda": ["base"],
    "runtime": ["onnx", "cpu", "passes", "codegen", "cuda", "device"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".cuh"}


def allowed_from(room):
    rooms = {room}
    for lower in BELOW[room]:
        rooms |= allowed_from(lower)
    return rooms


def files_below(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)


def includes(path):
    return INCLUDE.findall(path.read_text())


def check_rooms():
    for path in files_below("src"):
        room = path.relative_to(ROOT / "src").parts[0]
        if room not in BELOW:
            yield path, f"src/{room} is not a room of the design"
            continue
        allowed = allowed_from(room) | ({"redfuser"} if room != "device" else set())
        for name in includes(path):
            other = name.split("/")[0]
            if "/" not in name:
                yield path, f'includes "{name}" without its room'
            elif other not in allowed:
                yield path, f'includes "{name}": {room} is below {other}'


def check_public():
    for path in files_below("include"):
        for name in includes(path):
            if not name.startswith("redfuser/"):
                yield path, f'includes "{name}"; the public API includes nothing of src'
    for path in files_below("tools"):
        for name in includes(path):
            if "/" in name and not name.startswith("redfuser/"):
                yield path, f'includes "{name}"; tools use the public API only'


def main():
    problems = [*check_rooms(), *check_public()]
    for path, message in problems:
        print(f"{path.relative_to(ROOT)}: {message}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
