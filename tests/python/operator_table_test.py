"""The table of docs/operators.md is the one that redfuser-opt --list-ops prints.

    python operator_table_test.py REDFUSER_OPT docs/operators.md [--write]

With --write the document gets the present table.
"""

import pathlib
import re
import subprocess
import sys

TABLE = re.compile(r"^\| domain \| defined by \| operators \|\n(?:\|.*\n)*", re.MULTILINE)


def main():
    done = subprocess.run([sys.argv[1], "--list-ops"], capture_output=True, text=True, check=True)
    page = pathlib.Path(sys.argv[2])
    text = page.read_text()
    written = TABLE.search(text)
    if written is None:
        print(f"{page}: no table of operators")
        return 1
    if written.group() == done.stdout:
        return 0
    if "--write" in sys.argv:
        page.write_text(text[: written.start()] + done.stdout + text[written.end() :])
        return 0
    known = set(written.group().splitlines())
    for line in done.stdout.splitlines():
        if line not in known:
            print(f"not in {page}: {line}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
