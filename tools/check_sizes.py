"""Checks the size of source files: the median near 150 lines, none above 800."""

import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["include", "src", "tools", "tests", "python"]
SUFFIXES = {".h", ".cpp", ".cuh", ".py"}
LARGEST = 800
MEDIAN = 200


def main():
    sizes = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                sizes[path.relative_to(ROOT)] = len(path.read_text().splitlines())
    problems = [f"{path}: {lines} lines" for path, lines in sizes.items() if lines > LARGEST]
    median = statistics.median(sizes.values())
    if median > MEDIAN:
        problems.append(f"the median file has {median} lines, more than {MEDIAN}")
    print("\n".join(problems) or f"{len(sizes)} files, median {median:.0f} lines")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
