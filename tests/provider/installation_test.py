"""What the wheel installs, and what the documents show with it.

    python installation_test.py LIBRARY MODELS
"""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import onnxruntime
import onnxruntime_ep_redfuser
from provider import BY_NAME, LIBRARY, NAME

MODELS = pathlib.Path(sys.argv.pop(1)).resolve()
FAKES = os.environ.get("REDFUSER_FAKE_CUDA")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BERT = MODELS / "bert.ts.eager"
CUDA_NAME = "RedFuserCudaExecutionProvider"


def blocks(document):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


class Installation(unittest.TestCase):
    def test_the_library_and_its_name(self):
        self.assertEqual(onnxruntime_ep_redfuser.get_library_path(), LIBRARY)
        self.assertEqual(onnxruntime_ep_redfuser.get_ep_name(), NAME)
        self.assertEqual(onnxruntime_ep_redfuser.get_ep_names(), [NAME, CUDA_NAME])
        self.assertTrue(any(device.ep_name == NAME for device in onnxruntime.get_ep_devices()))

    def test_the_wheel_needs_nothing(self):
        metadata = importlib.metadata.metadata("onnxruntime-ep-redfuser")
        self.assertIsNone(metadata.get_all("Requires-Dist"))
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        files = {path.name for path in importlib.metadata.files("onnxruntime-ep-redfuser")}
        self.assertLessEqual({"libredfuser_ep.so", "onnx", "libprotobuf-dev", "LICENSE"}, files)

    def test_the_systems_of_the_document(self):
        wheel = importlib.metadata.distribution("onnxruntime-ep-redfuser").read_text("WHEEL")
        tag = re.search(r"^Tag: .*-manylinux_(\d+)_(\d+)_x86_64$", wheel, re.MULTILINE)
        self.assertIn(f"glibc {tag[1]}.{tag[2]} or newer", (ROOT / "docs/onnxruntime.md").read_text())

    def test_protobuf_is_not_shared_with_other_packages(self):
        names = [path.name for path in importlib.metadata.files("onnxruntime-ep-redfuser") if "protobuf" in path.name]
        self.assertEqual([name for name in names if ".so" in name and not name.startswith("libredfuser_ep_")], [])

    def test_the_library_exports_two_functions(self):
        listed = subprocess.run(["nm", "--dynamic", "--defined-only", LIBRARY], capture_output=True, text=True)
        names = {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}
        self.assertEqual(names, {"CreateEpFactories", "ReleaseEpFactory"})


class Documents(unittest.TestCase):
    def run_as_script(self, code):
        prepared = f"import os; os.chdir({str(BERT)!r})\n" + code
        environment = dict(os.environ)
        if "get_cuda_ep_name" in code:  # on the driver of tests/fake_cuda
            environment |= {"REDFUSER_CUDA_LIBRARIES": FAKES, "XDG_CACHE_HOME": tempfile.mkdtemp()}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", prepared], capture_output=True, text=True,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Error", done.stdout + done.stderr)

    @unittest.skipUnless(BY_NAME, "providers are not known by name")
    def test_the_code_of_the_readme_runs(self):
        shown = [code for code in blocks("README.md") if "onnxruntime_ep_redfuser" in code]
        self.assertEqual(len(shown), 1)
        self.run_as_script(shown[0])

    def test_the_code_of_the_document_runs(self):
        shown = blocks("docs/onnxruntime.md")
        self.assertGreater(len(shown), 2)
        for code in shown:
            if (BY_NAME or "providers=" not in code) and (FAKES or "get_cuda_ep_name" not in code):
                self.run_as_script(code)

    def test_the_example_runs(self):
        done = subprocess.run([sys.executable, ROOT / "examples" / "run_in_onnxruntime.py", BERT / "model.onnx"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out float32[", done.stdout)
        self.assertIn(NAME, done.stdout)

    def test_the_options_of_the_document_are_those_of_the_provider(self):
        table = re.search(r"^## Options\n(.*?)^## ", (ROOT / "docs/onnxruntime.md").read_text(), re.M | re.S).group(1)
        rows = [row for row in re.findall(r"^\| `.*", table, re.MULTILINE) if f"`{CUDA_NAME}`:" not in row]
        shown = re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in rows))
        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME], {"?": "1"})
        with self.assertRaises(Exception) as caught:
            onnxruntime.InferenceSession(str(BERT / "model.onnx"), options, enable_fallback=False)
        known = re.search(r"its options are ([\w, ]+)\)", str(caught.exception)).group(1)
        self.assertEqual(sorted(shown), known.split(", "))


if __name__ == "__main__":
    unittest.main()
