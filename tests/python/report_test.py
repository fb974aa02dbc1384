"""Opens the pages of --report in a headless Chromium: regions, search, steps and names that look like markup.

    python report_test.py REDFUSER_RUN REDFUSER_OPT MODELS

Without a browser the test is skipped (exit code 77).
"""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import onnx
from onnx import TensorProto, helper

SKIPPED = 77
HOSTILE = ["</script><script>document.documentElement.dataset.error='run'</script>", "\"'><img src=x onerror=alert(1)>",
           "größer & <b>κ</b>", "line\u2028separator\\u003c", "{{style}}"]


def browser():
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    return next((path for path in found if path), None)


class Page:
    """The document of a page as it stands once its scripts have run."""

    def __init__(self, program, path, **wanted):
        address = path.resolve().as_uri() + "#" + urllib.parse.urlencode(wanted)
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions",
                                   f"--user-data-dir={profile}", "--window-size=1400,900",
                                   "--virtual-time-budget=5000", "--dump-dom", address],
                                  capture_output=True, timeout=120)
        self.text = done.stdout.decode("utf-8", "replace")

    def part(self, mark):
        """The text of the element with this id, without markup."""
        found = re.search(rf'<(\w+)[^>]* ?id="{mark}"[^>]*>(.*)', self.text, re.DOTALL)
        if not found:
            return ""
        tag, rest, depth = found.group(1), found.group(2), 1
        for edge in re.finditer(rf"<(/?){tag}\b", rest):
            depth += -1 if edge.group(1) else 1
            if depth == 0:
                return html.unescape(re.sub(r"<[^>]*>", "", rest[:edge.start()]))
        return ""


def problems_of(page, what):
    if 'data-ready="yes"' not in page.text:
        yield f"{what}: the page is not ready"
    error = re.search(r'<html[^>]*data-error="([^"]*)"', page.text)
    if error:
        yield f"{what}: {html.unescape(error.group(1))}"


def expect(condition, what):
    if not condition:
        yield what


def check_alone(path):
    text = path.read_text()
    found = re.findall(r"""(?:src|href)=["'][^"'#]|@import|url\(|https?://""", re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL))
    yield from expect(not found, f"{path.name}: refers to {found}")


def check_model(program, opt, model, folder):
    path, explained = folder / "page.html", folder / "explain.json"
    subprocess.run([opt, model, "--report", path, "--explain", explained], check=True, capture_output=True)
    fused = json.loads(explained.read_text())["fused"]
    yield from check_alone(path)
    page = Page(program, path)
    yield from problems_of(page, "regions")
    cards = page.text.count('data-id="region-')
    yield from expect(cards == len(fused), f"{cards} regions are shown, {len(fused)} are fused")
    attention = next(region for region in fused if region["class"] == "attention")
    page = Page(program, path, region=attention["id"], theme="dark")
    yield from problems_of(page, "a region")
    panel = page.part("panel")
    for part in (f"region {attention['id']}", "Streaming form", "rescaled", "Finish", "attention_", *attention["nodes"]):
        yield from expect(part in panel, f"region {attention['id']} lacks {part!r}")
    page = Page(program, path, search="softmax", fold="0", view="before")
    yield from problems_of(page, "search")
    yield from expect("Softmax" in page.part("results"), "search: Softmax is not found")
    page = Page(program, path, search="no such thing")
    yield from expect("nothing found" in page.part("results"), "search: something is found")


def check_run(program, run, model, folder):
    path = folder / "run.html"
    subprocess.run([run, model, "--device", "cpu", "--report", path], check=True, capture_output=True)
    page = Page(program, path, step="0")
    yield from problems_of(page, "a run")
    yield from expect("measured" in page.part("panel"), "a run: no measured time")
    yield from expect("share of all steps" in page.part("panel"), "a run: no share of the time")


def hostile_model(path):
    """A softmax and an entropy whose nodes have names that look like markup."""
    names = iter(HOSTILE)
    nodes = [helper.make_node("Softmax", [HOSTILE[1]], ["p"], name=next(names)),
             helper.make_node("Exp", ["p"], ["e"], name=next(names)), helper.make_node("Log", ["e"], ["l"], name=next(names)),
             helper.make_node("ReduceSum", ["l"], ["r"], name=next(names)), helper.make_node("Neg", ["r"], [HOSTILE[0]], name=next(names))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(HOSTILE[1], TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor_value_info(HOSTILE[0], TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def check_names(program, opt, folder):
    model, path = folder / "<b>&model.onnx", folder / "names.html"
    hostile_model(model)
    subprocess.run([opt, model, "--report", path], check=True, capture_output=True)
    page = Page(program, path, tab="steps")
    yield from problems_of(page, "names")
    yield from expect("<b>&model.onnx" in page.part("title"), "names: the title is not the file's name")
    yield from expect("onerror=alert" not in re.sub(r"<script.*?</script>", "", page.text, flags=re.DOTALL).replace("&lt;img src=x onerror=alert", ""), "names: markup of a name is in the document")
    for name in HOSTILE:
        page = Page(program, path, node=name)
        yield from problems_of(page, f"node {name!r}")
        yield from expect(name in page.part("panel"), f"names: {name!r} is not shown")


def main():
    run, opt, models = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    program = browser()
    if program is None:
        print("skipped: there is no Chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = models / "bert.dynamo.sdpa" / "model.onnx"
        problems = [*check_model(program, opt, model, folder), *check_run(program, run, model, folder), *check_names(program, opt, folder)]
    print("\n".join(problems) or "all pages are as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
