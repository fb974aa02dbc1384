"""The README's operator table is the one that redfuser-opt --list-ops prints.

    python operator_table_test.py REDFUSER_OPT README
"""

import pathlib
import subprocess
import sys


def main():
    done = subprocess.run([sys.argv[1], "--list-ops"], capture_output=True, text=True, check=True)
    readme = pathlib.Path(sys.argv[2]).read_text()
    if done.stdout in readme:
        return 0
    known = set(readme.splitlines())
    for line in done.stdout.splitlines():
        if line not in known:
            print(f"not in the README: {line}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
