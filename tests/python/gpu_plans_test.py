"""The models of ONNX's backend tests and of the operator tests that have a kernel for every step on a GPU, by what
redfuser-run --inputs FILES --dump kernels prints without one: where values decide a model's structure, for the
values of its test. docs/conformance.md has the counts and, for the other models, the reasons; a difference fails,
and --write puts the present table there.

    python gpu_plans_test.py REDFUSER_RUN docs/conformance.md [--write] [--list REASON]

--list prints the models with that reason ("": every model without a plan, and its message).
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import conformance_test
import contrib_test
import ml_cases
import ml_test
import numpy as np
import opset_test
from onnx import numpy_helper

TARGET = "sm_90a"
TABLE = re.compile(r"^\| models \| on a GPU \|.*\n(?:\|.*\n)*\n\| reason \|.*\n(?:\|.*\n)*", re.MULTILINE)
# A message's kind, by the first pattern that it holds; the operator where none does.
REASONS = [
    ("strings", r"is a tensor of strings"),
    ("sizes that depend on data", r"depends on data"),
    ("sequences and optional values", r"is a sequence|is an optional|\[(Sequence|Optional|SplitTo|ConcatFrom)\w*\]"),
    ("control flow that a run decides", r"no plan: |\[(If|Loop|Scan)\]"),
]
REFUSED = "refused on every device"


def backend_models():
    """(name, the model's bytes, its inputs: a folder, or arrays by name)."""
    for name, _, file, folders, _ in conformance_test.all_cases():
        yield name, file.read_bytes(), folders[0] if folders and folders[0] else {}


def opset_models():
    table = opset_test.changes()
    for form in opset_test.FORMS:
        for opset in opset_test.opsets(form, table):
            model, feed = opset_test.build(form, opset)
            yield f"{form.op}-{opset} {form.attributes}", model.SerializeToString(), feed


def contrib_models():
    for case in contrib_test.CASES:
        model, feed = contrib_test.build(case)
        yield f"{case.op} {case.attributes}", model.SerializeToString(), feed


def ml_models():
    cases = [case[:4] for family in ml_test.FAMILIES for case in family()]
    for case in cases + [case for case, _ in ml_cases.wrong()]:
        model, feed = ml_test.build(*case)
        yield case[0], model.SerializeToString(), feed


SUITES = [("ONNX's backend tests", backend_models), ("operators by opset (`opset_test.py`)", opset_models),
          ("com.microsoft (`contrib_test.py`)", contrib_models), ("ai.onnx.ml (`ml_test.py`)", ml_models)]


def message_of(program, model, inputs, folder):
    """Why the model has no kernels for every step; None where it has."""
    path = folder / "model.onnx"
    path.write_bytes(model)
    command = [program, path, "--dump", "kernels", "--target", TARGET]
    if isinstance(inputs, dict):
        for index, (name, array) in enumerate(inputs.items()):
            tensor = numpy_helper.from_array(np.asarray(array), name)
            (folder / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
        inputs = folder if inputs else None
    if inputs is not None and any(inputs.glob("input_*.pb")):
        command += ["--inputs", inputs]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    if done.returncode != 0:
        return f"refused: {done.stderr.strip()}"
    missing = re.search(r"^# (?:none on a GPU: |(?=no plan: ))(.*)$", done.stdout, re.MULTILINE)
    return missing and missing.group(1)


def reason_of(message):
    if message.startswith("refused: "):
        return REFUSED
    for reason, pattern in REASONS:
        if re.search(pattern, message):
            return reason
    named = re.search(r"\[([\w.]+)\]", message)
    return f"{named.group(1)}" if named else message


def messages(program, models):
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def one(numbered):
            number, (name, model, inputs) = numbered
            folder = pathlib.Path(root, str(number))
            folder.mkdir()
            return name, message_of(program, model, inputs, folder)

        return list(pool.map(one, enumerate(models)))


def table_of(suites):
    lines = ["| models | on a GPU | of |", "|---|---|---|"]
    reasons = collections.Counter()
    for suite, results in suites:
        on_gpu = sum(message is None for _, message in results)
        lines.append(f"| {suite} | {on_gpu} | {len(results)} |")
        reasons.update(reason_of(message) for _, message in results if message is not None)
    every = [message for _, results in suites for _, message in results]
    lines += [f"| together | {every.count(None)} | {len(every)} |", "", "| reason | models |", "|---|---|"]
    lines += [f"| {reason} | {count} |" for reason, count in sorted(reasons.items(), key=lambda row: (-row[1], row[0]))]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", metavar="REASON")
    options = parser.parse_args()
    suites = [(suite, messages(options.program, models())) for suite, models in SUITES]
    table, text = table_of(suites), options.page.read_text()
    print(table)
    for _, results in suites:
        for name, message in results:
            if options.list is not None and message and options.list in ("", reason_of(message)):
                print(f"{reason_of(message)}\t{name}\t{message}")
    written = TABLE.search(text)
    if written is None:
        print(f"{options.page}: no table of plans")
        return 1
    if options.write:
        options.page.write_text(text[: written.start()] + table + text[written.end() :])
        return 0
    if written.group() != table:
        print(f"{options.page} has other counts: --write renews them")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
