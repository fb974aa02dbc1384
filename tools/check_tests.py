"""Whether every test of the tree ran, as the last step of tools/test.sh: each test file has tests in the build, each
test has its folder as its only label, and what was skipped is what tests/skipped_tests.txt records.

    python check_tests.py BUILD RESULTS.xml
"""

import ctypes
import fnmatch
import json
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"


def registered(build):
    """The tests that CTest knows: name to labels and command line."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    tests = {}
    for test in json.loads(shown)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests[test["name"]] = properties.get("LABELS", []), " ".join(test.get("command", []))
    return tests


def listed_files(build):
    """The source files of all tests in the build's gtest programs: folder and name."""
    return {pathlib.Path(case["file"]).parts[-2:]
            for listing in pathlib.Path(build, "tests").glob("*_tests.json")
            for suite in json.loads(listing.read_text())["testsuites"] for case in suite["testsuite"]}


def missing_tests(tests, build):
    """Test files and folders from which nothing runs."""
    commands = "\n".join(command for _, command in tests.values())
    ran = listed_files(build)
    absent = [path for path in TESTS.glob("*/*_test.cpp") if path.parts[-2:] not in ran]
    absent += [path for path in TESTS.glob("*/*_test.py") if str(path) not in commands]
    for path in sorted(absent):
        yield f"{path.relative_to(TESTS)}: no test of this file is in the build"
    for path in sorted(TESTS.glob("fuzz/*_fuzz.cpp")):
        if f"fuzz.{path.stem.removesuffix('_fuzz')}" not in tests:
            yield f"{path.relative_to(TESTS)}: its smoke test is not in the build"
    if "consumer" not in tests:
        yield "consumer: the test of the installed package is not in the build"


def wrong_labels(tests):
    for name, (labels, _) in tests.items():
        if len(labels) != 1 or not (TESTS / labels[0]).is_dir():
            yield f"{name}: its labels are {labels}, not one folder of tests/"


def has_gpu():
    """Asks the driver, apart from the runtime under test."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def has_browser():
    """As tests/python/report_test.py looks for one."""
    return any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


def recorded_skips(gpu):
    """Of tests/skipped_tests.txt, the patterns that hold on this machine, their counts, and whether the tests may
    run as well."""
    holding = {"always", "sometimes", "with-gpu" if gpu else "without-gpu"}
    if not has_browser():
        holding.add("without-browser")
    for line in (TESTS / "skipped_tests.txt").read_text().splitlines():
        match = re.fullmatch(r"(always|sometimes|with-gpu|without-gpu|without-browser) +(\d+) +(\S+)", line.split("#")[0].strip())
        if match and match[1] in holding:
            yield match[3], int(match[2]), match[1] == "sometimes"
        elif not match and line.split("#")[0].strip():
            sys.exit(f"skipped_tests.txt: cannot read \"{line}\"")


def wrong_skips(skipped, gpu):
    left = set(skipped)
    for pattern, count, may_run in recorded_skips(gpu):
        found = {name for name in left if fnmatch.fnmatchcase(name, pattern)}
        left -= found
        if len(found) != count and not (may_run and not found):
            names = "".join(f"\n  {name}" for name in sorted(found))
            yield f"{pattern}: {len(found)} tests are skipped, {count} are recorded in skipped_tests.txt{names}"
    for name in sorted(left):
        yield f"{name}: it is skipped, which skipped_tests.txt does not record"


def main():
    build, results = sys.argv[1:]
    tests = registered(build)
    cases = xml.etree.ElementTree.parse(results).getroot().findall("testcase")
    skipped = [case.get("name") for case in cases if case.find("skipped") is not None]
    problems = [*missing_tests(tests, build), *wrong_labels(tests), *wrong_skips(skipped, has_gpu())]
    problems += [f"{name}: it has no result" for name in sorted(set(tests) - {case.get("name") for case in cases})]
    print("\n".join(problems))
    print(f"{len(tests)} tests, {len(skipped)} skipped, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
