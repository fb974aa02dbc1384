"""Checks that a function which a source file exports is declared in the header of that file's name.

The header is beside the source, or in the public API. Members of a class may be in several files of
the folder whose header declares the class. What else is right is listed below, with its reason.
"""

import collections
import pathlib
import re
import sys

from check_names import IGNORED, NAMESPACE

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Header -> why it declares functions of other files.
TABLES = {
    "src/ops/families.h": "a table of operators per file",
    "src/passes/passes.h": "a pass per file",
    "src/onnx/functions/expansion_call.h": "function bodies, listed in expansions.cpp",
    "src/cpu/opaque/opaque_kernels.h": "kernels, listed in opaque_table.cpp",
    "src/codegen/opaque/opaque_kernels.h": "kernels, listed in dispatch.cpp",
    "src/cpu/simd/isa.h": "parts of the table of vector kernels, listed in table.cpp",
}
# Source -> why its functions are declared elsewhere.
SOURCES = {
    "src/ir/print.cpp": "prints types of several headers",
    "src/cascade/print.cpp": "prints types of several headers",
    "src/fuse/print.cpp": "prints a type of plan.h",
    "src/cpu/simd/table.cpp": "compiled once per instruction set; declared in kernel_dispatch.cpp",
    "src/cpu/machine/kernel_dispatch.cpp": "the files of kernel_table.h are compiled per instruction set",
}

NAME = re.compile(r"(~?\w+|operator ?[^\w\s(]+|operator ?\(\)) ?\(")
CLASS = re.compile(r"(?:template ?<[^<>]*> ?)?(?:struct|class) (\w+)")
NOT_EXPORTED = re.compile(r"template ?<>|.*\bstatic\b")


def statements(text):
    """Heads of the statements and blocks in named namespaces, with the character that ends each."""
    text = IGNORED.sub(lambda m: '""' if m.group()[0] in "\"'R" else " ", text)
    scopes, head, parentheses = [], "", 0
    for part in re.split(r"([{};()])", text):
        if part in ("(", ")"):
            parentheses += 1 if part == "(" else -1
        if parentheses > 0 or part not in ("{", "}", ";"):
            head += part
            continue
        head = " ".join(head.split())
        space = NAMESPACE.match(head)
        if part != "}" and None not in scopes and "" not in scopes and not space:
            yield head, part
        if part == "{":
            scopes.append(space.group(1) if space else None)
        elif part == "}" and scopes:
            scopes.pop()
        head = ""


def function_name(head):
    """The name of the function that a statement declares, with its class: "f" or "C::f"; or None."""
    match = NAME.search(head)
    if not match or "=" in head[: match.start()]:
        return None
    qualifier = re.search(r"((?:\w+(?:<[^<>]*>)?::)+)$", head[: match.start()])
    if not qualifier and not re.search(r"[\w>*&]\s*$", head[: match.start()]):
        return None  # a call of a macro, not a function
    return (qualifier.group(1) if qualifier else "") + match.group(1)


def declarations():
    """Header -> the functions and the classes that it declares."""
    functions, classes = {}, collections.defaultdict(set)
    for folder in ("include", "src"):
        for path in sorted((ROOT / folder).rglob("*.h")):
            found = list(statements(path.read_text()))
            functions[path] = {function_name(head) for head, end in found if end == ";"}
            for head, end in found:
                match = CLASS.match(head)
                if match and end == "{":
                    classes[match.group(1)].add(path)
    return functions, classes


def problems():
    functions, classes = declarations()
    by_name = collections.defaultdict(list)
    for path, names in functions.items():
        for name in names:
            by_name[name].append(path)
    for path in sorted((ROOT / "src").rglob("*.cpp")):
        if str(path.relative_to(ROOT)) in SOURCES:
            continue
        for head, end in statements(path.read_text()):
            name = function_name(head) if end == "{" else None
            if name is None or NOT_EXPORTED.match(head):
                continue
            if "::" in name:
                owners = {part.partition("<")[0] for part in name.split("::")[:-1]}
                headers = set().union(*(classes.get(owner, set()) for owner in owners))
                right = any(is_right(header, path, member=True) for header in headers)
            else:
                right = any(is_right(header, path) for header in by_name[name])
            if not right:
                yield f"{path.relative_to(ROOT)}: {name} is not declared in {path.stem}.h"


def is_right(header, source, member=False):
    relative = header.relative_to(ROOT)
    return (
        header == source.with_suffix(".h")
        or relative.parts[0] == "include"
        or str(relative) in TABLES
        or (member and header.parent == source.parent)
    )


def main():
    found = list(dict.fromkeys(problems()))
    print("\n".join(found) or "every exported function is declared in its file's header")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
