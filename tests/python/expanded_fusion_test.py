"""What fuses in the `*_expanded` twins of ONNX's backend tests, where a composite operator stands as its
primitives: fused regions by class, and the reasons of those left apart with the node to blame. Fails
where fewer regions fuse than FUSED says.

    python expanded_fusion_test.py REDFUSER_OPT [--verbose]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

from onnx.backend.test import loader

# Fused regions by family of operators.
FUSED = {"attention": 64, "flexattention": 11, "softmax": 14, "logsoftmax": 14,
         "layer_normalization": 38, "rms_normalization": 19, "group_normalization": 2,
         "linear_attention": 1, "mvn": 0, "sce": 52, "nllloss": 7, "reduce_log_sum_exp": 0}


def family_of(name):
    stem = name.removeprefix("test_")
    found = [family for family in FUSED if stem.startswith(family)]
    return max(found, key=len) if found else "other"


def explain(opt, case):
    model = os.path.join(case.model_dir, "model.onnx")
    done = subprocess.run([opt, model, "--explain", "-"], capture_output=True, text=True,
                          errors="replace", timeout=300)
    if done.returncode != 0:
        return None, done.stderr.strip()[:200]
    return json.loads(done.stdout.replace(model + ": ", "")), ""


class Family:
    def __init__(self):
        self.cases = 0
        self.fused = collections.Counter()
        self.apart = collections.Counter()

    def add(self, report, error):
        self.cases += 1
        if report is None:
            self.apart[error] += 1
            return
        self.fused.update(region["class"] for region in report["fused"])
        self.apart.update(re.sub(r"[0-9]+", "n", region["reason"]) for region in report["unfused"])

    def print(self, name):
        fused = ", ".join(f"{count} {what}" for what, count in sorted(self.fused.items()))
        print(f"{name}: {self.cases} cases, fused: {fused or 'none'}; apart: {self.apart.total()}")
        for reason, count in self.apart.most_common():
            print(f"    {count} x {reason[:160]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("opt")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    cases = [case for case in loader.load_model_tests(kind="node") if "_expanded" in case.name]
    families = collections.defaultdict(Family)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (report, error) in zip(cases, pool.map(lambda c: explain(options.opt, c), cases)):
            families[family_of(case.name)].add(report, error)
            for region in report["unfused"] if options.verbose and report else []:
                print(f"{case.name}: {region['blame']}: {region['reason']}")
    for name in sorted(families):
        families[name].print(name)
    fewer = [name for name, count in FUSED.items() if families[name].fused.total() < count]
    print(f"fewer regions fuse than before: {', '.join(fewer)}" if fewer else "as many regions fuse")
    return 1 if fewer else 0


if __name__ == "__main__":
    sys.exit(main())
