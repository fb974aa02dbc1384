"""What the wheel installs: programs, types, the licence; the example and the code of docs/python.md run.

    python installation_test.py MODELS
"""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import redfuser

MODELS = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
BERT = MODELS / "bert.ts.eager"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Installation(unittest.TestCase):
    def test_programs_are_on_the_path(self):
        for program in ("redfuser-run", "redfuser-opt", "redfuser-bench"):
            self.assertIn(program, output_of(program, "--help"))
        self.assertIn(redfuser.__version__, output_of("redfuser-run", "--version"))
        output_of("redfuser-run", BERT / "model.onnx", "--inputs", BERT / "inputs.npz", "--compare", BERT / "outputs.npz")
        failed = subprocess.run(["redfuser-opt", "nowhere.onnx", "--explain"], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 2)
        self.assertIn("nowhere.onnx", failed.stderr)

    def test_the_server_says_what_it_lacks(self):
        self.assertIn("redfuser-serve", output_of("redfuser-serve", "--help"))
        failed = subprocess.run(["redfuser-serve", MODELS], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 2)
        self.assertIn("pip install 'redfuser[serve]'", failed.stderr)
        self.assertNotIn("Traceback", failed.stderr)

    def test_files(self):
        folder = pathlib.Path(redfuser.__file__).parent
        self.assertIn("class Session", (folder / "_core.pyi").read_text())
        self.assertTrue((folder / "py.typed").exists())
        licences = {file.name for file in importlib.metadata.files("redfuser") if file.parent.name == "licenses"}
        self.assertLessEqual({"LICENSE", "onnx", "libprotobuf-dev", "libre2-dev"}, licences)
        self.assertEqual(importlib.metadata.version("redfuser"), redfuser.__version__)
        self.assertIn("cuda", importlib.metadata.metadata("redfuser").get_all("Provides-Extra"))

    def test_the_systems_of_the_document(self):
        tag = re.search(r"^Tag: .*-manylinux_(\d+)_(\d+)_x86_64$", importlib.metadata.distribution("redfuser").read_text("WHEEL"), re.M)
        self.assertIn(f"glibc {tag[1]}.{tag[2]} or newer", (ROOT / "docs" / "python.md").read_text())

    def test_finds_nvidias_wheels(self):
        packages = pathlib.Path(redfuser.__file__).parents[1]
        folder = packages / "nvidia" / "redfuser_test" / "lib"
        folder.mkdir(parents=True)
        try:
            error = subprocess.run([sys.executable, "-c", "import redfuser; redfuser.Session(redfuser.Model.parse("
                                    "'<ir_version: 9, opset_import: [\"\" : 20]> g (float x) => (float y) { y = Exp(x) }'"
                                    "), device='cuda')"], capture_output=True, text=True).stderr
            program = subprocess.run(["redfuser-run", BERT / "model.onnx", "--device", "cuda"],
                                     capture_output=True, text=True).stderr
        finally:
            shutil.rmtree(folder.parent)
        if redfuser.get_device() == "CPU":
            self.assertIn(str(folder), error)
            self.assertIn(str(folder), program)

    def test_the_example_runs(self):
        text = output_of(sys.executable, ROOT / "examples" / "run_model.py", BERT / "model.onnx")
        self.assertIn("out float32", text)
        self.assertIn("fused as attention", text)

    def test_the_code_of_the_documents_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 2)
        names, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            for file in BERT.iterdir():
                shutil.copy(file, folder)
            shutil.copy(MODELS / "decoders" / "llama" / "model.onnx", pathlib.Path(folder, "decoder.onnx"))
            os.chdir(folder)
            try:
                for block in blocks:
                    if "torch" not in block:  # needs a GPU and torch
                        exec(block, names)
            finally:
                os.chdir(before)
        self.assertEqual(names["array"].dtype, "float32")


if __name__ == "__main__":
    unittest.main()
