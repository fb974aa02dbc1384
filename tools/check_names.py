"""Checks that no two files define different things by one name in one namespace.

The linker joins such definitions without a word. Types, aliases, inline variables and inline or
template functions (by their parameters) are compared, as the text has them; names of unnamed
namespaces are their files' own.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders whose files may become one program.
PROGRAMS = [["include", "src", "tests"], ["include", "src", "tools"], ["include", "src", "python"]]

IGNORED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*)$")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class| struct)?) (\w+)(?: final)?(?: ?:[^:].*)?$")
ALIAS = re.compile(r"using (\w+) ?=")
VARIABLE = re.compile(r"inline constexpr [^()=]*?\b(\w+)(?:\[\w*\])* ?(?:=|$)")
FUNCTION = re.compile(r"[^()=]*?\b(\w+) ?\((.*)\)(?: const| noexcept)*$")
TEMPLATE = re.compile(r"template ?<(?:[^<>]|<[^<>]*>)*> ?")


def declared(head):
    """What a statement or the head of a block defines, as (kind, name), or None."""
    template = TEMPLATE.match(head)
    if template and template.group().replace(" ", "") == "template<>":
        return None
    body = head[template.end() :] if template else head
    for kind, pattern in (("type", TYPE), ("alias", ALIAS), ("variable", VARIABLE)):
        match = pattern.match(body)
        if match:
            return ("type" if kind == "alias" else kind), match.group(1)
    return None


def function(head):
    match = FUNCTION.match(head)
    if not match or not re.search(r"^template|\b(?:inline|constexpr)\b", head):
        return None
    return "function", f"{match.group(1)}({match.group(2)})"


def definitions(text):
    """Pairs of the namespace and what is defined in it, outside of unnamed namespaces."""
    text = IGNORED.sub(lambda m: '""' if m.group()[0] in "\"'R" else " ", text)
    scopes, head = [], ""  # of every open brace: the namespace's name, or None
    for part in re.split(r"([{};])", text):
        if part not in ("{", "}", ";"):
            head = " ".join(f"{head} {part}".split())
            continue
        outside = None not in scopes and "" not in scopes
        space = NAMESPACE.match(head)
        if part != "}" and outside and not space:
            found = declared(head) if part == "{" or " = " in head else None
            found = found or (function(head) if part == "{" else None)
            if found:
                yield "::".join(scopes), found
        if part == "{":
            scopes.append(space.group(1) if space else None)
        elif part == "}" and scopes:
            scopes.pop()
        head = ""


def problems(folders):
    places = collections.defaultdict(set)
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp"}:
                for space, found in definitions(path.read_text()):
                    places[space, found].add(str(path.relative_to(ROOT)))
    for (space, (kind, name)), paths in sorted(places.items()):
        if len(paths) > 1:
            yield f"{kind} {space}::{name} is defined in {', '.join(sorted(paths))}"


def main():
    found = sorted({problem for folders in PROGRAMS for problem in problems(folders)})
    print("\n".join(found) or "every name has one definition in its namespace")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
