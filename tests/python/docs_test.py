"""The documents say what the programs and the sources say.

    python docs_test.py REDFUSER_RUN REDFUSER_OPT REDFUSER_BENCH [--write]

- Every ```console block of docs/ holds a line "$ COMMAND" and its output, run in the root folder.
- docs/cli.md names the options, exit codes and environment variables that there are.
- Commands in ```sh blocks use options that there are.
- The README has a row for every folder and at most 110 lines.
- Relative links lead to files and headings.

With --write the blocks get the present output.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n((?:.*\n)*?)```$", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])(--[a-z0-9][a-z0-9-]*)")
README_LINES = 110


def documents():
    folders = [*(ROOT / "docs").rglob("*.md")]
    return sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *folders])


def section(text, title):
    """The part of a document below a heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def check_consoles(programs, write):
    paths = [str(pathlib.Path(program).resolve().parent) for program in programs.values()]
    environment = {**os.environ, "PATH": os.pathsep.join([*paths, os.environ["PATH"]])}
    for document in documents():
        text = document.read_text()
        hidden = [match.span() for match in COMMENT.finditer(text)]
        problems = []

        def present(block):
            if any(begin <= block.start() < end for begin, end in hidden):
                return block.group()
            done = subprocess.run(block.group(1), shell=True, cwd=ROOT, env=environment,
                                  capture_output=True, text=True)
            if done.returncode != 0 or done.stderr:
                problems.append(f"$ {block.group(1)}: exit code {done.returncode} {done.stderr}")
            output = "\n".join(map(str.rstrip, done.stdout.splitlines())).rstrip() + "\n"
            if output != block.group(2) and not write:
                problems.append(f"$ {block.group(1)}: prints something else (--write renews it)")
            return f"```console\n$ {block.group(1)}\n{output}```"

        renewed = CONSOLE.sub(present, text)
        if write:
            document.write_text(renewed)
        for problem in problems:
            yield document, problem


def options_of(program):
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    heads = re.findall(r"^  (-.*?)(?:  |$)", help_text.stdout, re.MULTILINE)
    return {option for head in heads for option in OPTION.findall(head)}


def check_options(programs):
    page = ROOT / "docs/cli.md"
    text = page.read_text()
    options = {name: options_of(program) for name, program in programs.items()}
    for name, known in options.items():
        heads = re.findall(r"^\| (`-.*?) \|", section(text, name), re.MULTILINE)
        written = {option for head in heads for option in OPTION.findall(head)}
        for option in sorted(known ^ written):
            where = "is not in the document" if option in known else "is not in --help"
            yield page, f"{name} {option} {where}"
    for document in documents():
        for language, body in FENCE.findall(COMMENT.sub("", document.read_text())):
            if language not in ("sh", "console"):
                continue
            for line in body.replace("\\\n", " ").splitlines():
                used = re.search(r"(?:^|[\s/])(redfuser-\w+) ([^|#]*)", line)
                if not used or used.group(1) not in options:
                    continue
                for option in OPTION.findall(used.group(2)):
                    if option not in options[used.group(1)]:
                        yield document, f"{used.group(1)} has no option {option}"


def check_exit_codes():
    page = ROOT / "docs/cli.md"
    codes = set(re.findall(r"constexpr int k\w+ = (\d);", (ROOT / "tools/tool.h").read_text()))
    written = set(re.findall(r"^\| (\d) \|", section(page.read_text(), "Exit codes"), re.MULTILINE))
    if codes != written:
        yield page, f"exit codes {sorted(written)}, in tools/tool.h {sorted(codes)}"


def check_environment():
    page = ROOT / "docs/cli.md"
    rows = re.findall(r"^\| `(\w+)` \| `(src/\w+)` \|", page.read_text(), re.MULTILINE)
    read = {}
    for source in (ROOT / "src").rglob("*.cpp"):
        text = source.read_text()
        if "getenv" not in text:
            continue
        room = "/".join(source.relative_to(ROOT).parts[:2])
        for name in re.findall(r'"([A-Z][A-Z0-9_]+)"', text):
            read[name] = room
    for name in sorted(set(read) | {name for name, _ in rows}):
        written = [room for row, room in rows if row == name]
        if name not in read:
            yield page, f"{name} is read nowhere in src"
        elif written != [read[name]]:
            yield page, f"{name} is read in {read[name]}, the document has {written or 'no row'}"


def check_readme():
    page = ROOT / "README.md"
    text = page.read_text()
    lines = len(text.splitlines())
    if lines > README_LINES:
        yield page, f"{lines} lines, more than {README_LINES}"
    written = set(re.findall(r"^\| `([\w/]+)` \|", section(text, "Map"), re.MULTILINE))
    for folder in sorted(written):
        if not (ROOT / folder).is_dir():
            yield page, f"{folder} of the map does not exist"
    # Only git knows which folders belong to the repository; without it nothing is missed.
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = [pathlib.PurePath(line).parts for line in tracked.stdout.splitlines()]
    folders = {f"src/{parts[1]}" for parts in files if parts[0] == "src" and len(parts) > 2}
    folders |= {parts[0] for parts in files if len(parts) > 1 and parts[0][0] != "."} - {"src"}
    for folder in sorted(folders - written):
        yield page, f"the map lacks {folder}"


def anchors(document):
    """The headings' names in links, as GitHub makes them."""
    text = FENCE.sub("", document.read_text())
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        yield plain.replace(" ", "-")


def check_links():
    for document in documents():
        text = FENCE.sub("", document.read_text())
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = (document.parent / path).resolve() if path else document
            if not target.exists():
                yield document, f"link to {link}: {path} does not exist"
            elif anchor and anchor not in anchors(target):
                yield document, f"link to {link}: no such heading"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    programs = dict(zip(("redfuser-run", "redfuser-opt", "redfuser-bench"), arguments))
    problems = [*check_consoles(programs, "--write" in sys.argv), *check_options(programs),
                *check_exit_codes(), *check_environment(), *check_readme(), *check_links()]
    for document, problem in problems:
        print(f"{document.relative_to(ROOT)}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
