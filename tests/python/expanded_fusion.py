"""What fuses in the `*_expanded` twins of ONNX's backend tests, where a composite operator stands as its
primitives: fused regions by class, and the reasons of those left apart with the node to blame.

    python expanded_fusion.py REDFUSER_OPT [--verbose]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess

from onnx.backend.test import loader

FAMILIES = ["attention", "flexattention", "linear_attention", "softmax", "logsoftmax",
            "layer_normalization", "rms_normalization", "group_normalization", "mvn", "sce",
            "nllloss", "reduce_log_sum_exp"]


def family_of(name):
    stem = name.removeprefix("test_")
    found = [family for family in FAMILIES if stem.startswith(family)]
    return max(found, key=len) if found else "other"


def explain(opt, case):
    done = subprocess.run([opt, os.path.join(case.model_dir, "model.onnx"), "--explain", "-"],
                          capture_output=True, text=True, errors="replace", timeout=300)
    if done.returncode != 0:
        return None, done.stderr.strip()[:200]
    return json.loads(done.stdout), ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("opt")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    cases = [case for case in loader.load_model_tests(kind="node") if "_expanded" in case.name]
    classes = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(collections.Counter)
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (report, error) in zip(cases, pool.map(lambda c: explain(options.opt, c), cases)):
            family = family_of(case.name)
            counts[family] += 1
            if report is None:
                reasons[family][error] += 1
                continue
            for region in report["fused"]:
                classes[family][region["class"]] += 1
            for region in report["unfused"]:
                reason = re.sub(r"[0-9]+", "n", region["reason"])
                reasons[family][reason] += 1
                if options.verbose:
                    print(f"{case.name}: {region['blame']}: {region['reason']}")
    for family in sorted(counts):
        print(f"{family}: {counts[family]} cases, fused {dict(classes[family])}, "
              f"apart {sum(reasons[family].values())}")
        for reason, count in reasons[family].most_common(4):
            print(f"    {count} x {reason[:160]}")


if __name__ == "__main__":
    main()
