"""Checks that a file of src which uses fmt includes it, itself or by a header: precompiled headers hide what is missing,
and the sanitizers' builds have none."""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / "src", ROOT / "include"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def has_fmt(path):
    text = path.read_text()
    if "#include <fmt/" in text:
        return True
    found = (folder / name for name in INCLUDE.findall(text) for folder in FOLDERS)
    return any(has_fmt(header) for header in found if header.exists())


def main():
    paths = [path for path in sorted(FOLDERS[0].rglob("*")) if path.suffix in (".h", ".cpp")]
    missing = [path.relative_to(ROOT) for path in paths if "fmt::" in path.read_text() and not has_fmt(path)]
    print("\n".join(f"{path}: uses fmt:: without <fmt/format.h>" for path in missing) or "files that use fmt include it")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
