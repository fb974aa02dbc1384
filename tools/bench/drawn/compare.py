"""Puts our times of drawn graphs beside PyTorch's, and writes both as one file.

    python tools/bench/drawn/compare.py OURS.json PYTORCH.json [--json FILE] [--worst 20]

OURS.json is what `redfuser-bench --suite e2e --models FOLDER --json` writes, PYTORCH.json what times.py does, of the
same folder on the same GPU. Ratios are the better of PyTorch's two times over ours: above 1 is faster.
"""

import argparse
import json
import math
import pathlib


def joined(ours, theirs):
    """Rows of both, the slowest beside PyTorch first, and the names that ours lacks."""
    by_name = {row["name"]: row for row in ours["rows"] if "us" in row}
    rows = []
    for row in theirs["rows"]:
        own = by_name.get(row["name"])
        if own:
            ratio = min(row["compiled_us"], row["eager_us"]) / own["us"]
            rows.append({"name": row["name"], "us": round(own["us"], 2), "torch_compile_us": row["compiled_us"],
                         "torch_eager_us": row["eager_us"], "ratio": round(ratio, 3), "error": own.get("error"),
                         "strategy": own.get("strategy")})
    missing = [row["name"] for row in theirs["rows"] if row["name"] not in by_name]
    return sorted(rows, key=lambda row: row["ratio"]), missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--json")
    parser.add_argument("--worst", type=int, default=20)
    arguments = parser.parse_args()
    ours, theirs = (json.loads(pathlib.Path(path).read_text()) for path in (arguments.ours, arguments.theirs))
    rows, missing = joined(ours, theirs)
    if not rows:
        raise SystemExit("no graph is in both files")
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    slower, far = (sum(row["ratio"] < limit for row in rows) for limit in (1, 1 / 1.15))
    print(f"{len(rows)} graphs, {mean:.2f} times as fast in the geometric mean, slower on {slower}, by more than 15 % on "
          f"{far}")
    for row in rows[:arguments.worst]:
        print(f"{row['ratio']:5.2f} {row['us']:9.1f} {row['torch_compile_us']:9.1f} {row['torch_eager_us']:9.1f}  "
              f"{row['name']}  {row['strategy']}")
    for name in missing:
        print(f"not timed by us: {name}")
    if arguments.json:
        result = {key: ours.get(key) for key in ("device", "versions", "commit")}
        result["versions"] = {**(result["versions"] or {}), **theirs.get("versions", {})}
        result["rows"] = sorted(rows, key=lambda row: row["name"])
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
