"""Checks that every file includes only from the folders below its own, and the folders' sizes."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder of src -> the folders that it may include directly; those of these come with them. A
# subfolder that is not listed may include what its parent may, and its parent; a parent may include
# its subfolders only where it is listed to, and these then include nothing of the parent.
BELOW = {
    "base": [],
    "base/files": ["base"],
    "base/tensors": ["base"],
    "ir": ["base/tensors", "ir/scalars"],
    "ir/scalars": [],
    "ops": ["ir"],
    "ops/image": ["ops/elementwise"],
    "ops/reduce": ["ops/elementwise"],
    "reference": ["ops"],
    "reference/expressions": [],
    "reference/operators": ["reference/expressions"],
    "reference/execute": ["reference/operators"],
    "onnx": ["ops"],
    "onnx/functions": [],
    "onnx/functions/bodies": ["onnx/functions"],
    "onnx/proto": ["onnx/functions", "base/files"],
    "onnx/check": ["onnx/proto"],
    "onnx/import": ["onnx/check"],
    "onnx/export": ["onnx/import"],
    "onnx/support": ["onnx/import"],
    "cascade": ["ir"],
    "cascade/algebra": ["cascade"],
    "cascade/derive": ["cascade/algebra"],
    "cascade/certify": ["cascade", "cascade/visibility"],
    "cascade/extract": ["cascade"],
    "cascade/visibility": ["cascade"],
    "fuse": ["cascade/derive", "cascade/certify", "cascade/extract", "cascade/visibility", "ops"],
    "cpu": ["ops", "ops/recurrent", "select"],
    "cpu/simd": [],
    "cpu/simd/integers": ["cpu/simd/moves"],
    "cpu/simd/moves": ["cpu/simd"],
    "cpu/simd/pointwise": ["cpu/simd"],
    "cpu/simd/windows": ["cpu/simd/moves"],
    "cpu/machine": ["cpu", "cpu/simd"],
    "cpu/growing": ["cpu"],
    "cpu/tile": ["cpu/growing", "cpu/machine", "cpu/simd/integers", "cpu/tile/bytes"],
    "cpu/tile/bytes": ["cpu/simd"],
    "cpu/pointwise": ["cpu/tile"],
    "cpu/estimate": ["cpu/pointwise"],
    "cpu/steps": ["cpu/estimate"],
    "cpu/steps/cascade": ["cpu/steps/map"],
    "cpu/steps/map": ["cpu/steps", "cpu/opaque"],
    "cpu/recurrent": ["cpu/machine", "cpu/simd/integers"],
    "cpu/opaque": ["cpu/recurrent"],
    "cpu/opaque/image": ["cpu/opaque", "cpu/simd/windows"],
    "cpu/opaque/image/integers": ["cpu/opaque/image"],
    "cpu/convolution": ["cpu/steps", "cpu/opaque/image/integers"],
    "cpu/select": ["cpu/steps/cascade", "cpu/steps/map", "cpu/convolution"],
    "cpu/checks": ["base/tensors", "cpu/select"],
    "passes/weights": ["cpu/checks", "ops"],
    "passes/integers": ["passes/weights", "passes/rewriting"],
    "passes/rewriting": ["ops"],
    "passes": ["passes/integers", "passes/rewriting", "ops/reduce"],
    "passes/precision": ["passes"],
    "fuse/growing": ["fuse"],
    "select": ["fuse/growing"],
    "codegen": ["select"],
    "codegen/text": [],
    "codegen/core": ["codegen/text"],
    "codegen/orders": ["codegen/core"],
    "codegen/elementwise": ["codegen/core"],
    "codegen/functor": ["codegen/elementwise"],
    "codegen/rows": ["codegen/functor"],
    "codegen/columns": ["codegen/rows"],
    "codegen/matrix": ["codegen/elementwise"],
    "codegen/cluster_product": ["codegen/matrix"],
    "codegen/contraction": ["codegen/elementwise"],
    "codegen/maps": ["codegen/contraction"],
    "codegen/product": ["codegen/cluster_product", "codegen/contraction"],
    "codegen/convolution": ["codegen/integer_product", "codegen/maps"],
    "codegen/opaque": ["codegen/convolution", "codegen/ranking"],
    "codegen/recurrent": ["codegen/product", "ops/recurrent"],
    "codegen/ranking": ["codegen/rows"],
    "codegen/row_product": ["codegen/product", "codegen/ranking"],
    "codegen/thin_rows": ["codegen/product", "codegen/rows"],
    "codegen/chain": ["codegen/product"],
    "codegen/integer_product": ["codegen/product"],
    "codegen/scan": ["codegen/elementwise"],
    "codegen/attention": ["codegen/rows", "codegen/product"],
    "codegen/attention/mma": ["codegen/attention"],
    "codegen/attention/hopper": ["codegen/attention"],
    "codegen/attention/large_head": ["codegen/attention/hopper", "codegen/attention/mma"],
    "codegen/select": ["codegen/attention/large_head", "codegen/opaque", "codegen/columns",
                       "codegen/row_product", "codegen/integer_product", "codegen/scan",
                       "codegen/recurrent", "codegen/maps", "codegen/orders"],
    "codegen/joined": ["codegen/select", "codegen/thin_rows", "codegen/chain"],
    "device": [],
    "device/product": ["device", "device/maps"],
    "device/contraction": ["device"],
    "device/convolution": ["device/product"],
    "cuda": ["base/files"],
    "io": ["onnx/proto"],
    "runtime": ["base/tensors", "io", "reference/execute", "onnx/export", "onnx/support", "passes/precision",
                "codegen/joined", "cuda", "device"],
    "runtime/program/sizes": [],
    "runtime/program": ["runtime/program/sizes"],
    "runtime/facts": ["runtime/program"],
    "runtime/cpu": ["runtime/facts"],
    "runtime/export": ["runtime/load"],
    "runtime/load": ["runtime/program"],
    "runtime/gpu/bound": ["runtime/load"],
    "runtime/gpu": ["runtime/gpu/bound", "runtime/cpu"],
    "runtime/report": ["runtime/program"],
    "runtime/session": ["runtime/cpu", "runtime/gpu"],
    "runtime/state": ["runtime/program"],
    "runtime/decode": [],
    "ep": ["runtime"],
    "ep/gpu": ["ep"],
    "ep/library": ["ep/gpu"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".cuh"}
MOST_FILES = 25  # in one folder


def parent_of(folder):
    return folder.rpartition("/")[0]


def allowed_from(folder):
    """The folder, and all those that it may include."""
    folders = {folder}
    for lower in BELOW.get(folder, [parent_of(folder)]):
        folders |= allowed_from(lower)
    outer = parent_of(folder)
    while outer:  # what the stage as a whole may include
        for lower in BELOW.get(outer, []):
            if not lower.startswith(f"{outer}/"):
                folders |= allowed_from(lower)
        outer = parent_of(outer)
    return folders


def files_below(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)


def includes(path):
    return INCLUDE.findall(path.read_text())


def check_folders():
    for path in files_below("src"):
        folder = str(path.parent.relative_to(ROOT / "src"))
        if folder.split("/")[0] not in BELOW:
            yield path, f"src/{folder} is not a folder of the design"
            continue
        allowed = allowed_from(folder)
        for name in includes(path):
            other = name.rpartition("/")[0]
            if folder == "device" or other == "redfuser":
                continue
            if not other:
                yield path, f'includes "{name}" without its folder'
            elif other not in allowed:
                yield path, f'includes "{name}": {folder} is not above {other}'


def check_counts():
    for folder in sorted(p for p in (ROOT / "src").rglob("*") if p.is_dir()):
        count = sum(p.suffix in SUFFIXES | {".def"} for p in folder.iterdir())
        if count > MOST_FILES:
            yield folder, f"{count} files, more than {MOST_FILES}"


def check_public():
    for path in files_below("include"):
        for name in includes(path):
            if not name.startswith("redfuser/"):
                yield path, f'includes "{name}"; the public API includes nothing of src'
    for path in files_below("tools") + files_below("python"):
        for name in includes(path):
            if "/" in name and not name.startswith("redfuser/"):
                yield path, f'includes "{name}"; tools and bindings use the public API only'


def main():
    problems = [*check_folders(), *check_counts(), *check_public()]
    for path, message in problems:
        print(f"{path.relative_to(ROOT)}: {message}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
