"""The tables of docs/operators.md are those that redfuser-opt --list-ops prints, with and without --device cuda.

    python operator_table_test.py REDFUSER_OPT docs/operators.md [--write]

With --write the document gets the present tables.
"""

import pathlib
import re
import subprocess
import sys

TABLES = [("defined by", []), ("on a GPU", ["--device", "cuda"])]


def check_table(page, title, table, write):
    """The number of differences between the page's table and this one, which --write puts there."""
    pattern = re.compile(rf"^\| domain \| {title} \| operators \|\n(?:\|.*\n)*", re.MULTILINE)
    text = page.read_text()
    written = pattern.search(text)
    if written is None:
        print(f"{page}: no table of operators \"{title}\"")
        return 1
    if written.group() == table:
        return 0
    if write:
        page.write_text(text[: written.start()] + table + text[written.end() :])
        return 0
    known = set(written.group().splitlines())
    for line in table.splitlines():
        if line not in known:
            print(f"not in {page}: {line}")
    return 1


def main():
    page, bad = pathlib.Path(sys.argv[2]), 0
    for title, options in TABLES:
        done = subprocess.run([sys.argv[1], "--list-ops", *options], capture_output=True, text=True, check=True)
        bad += check_table(page, title, done.stdout, "--write" in sys.argv)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
