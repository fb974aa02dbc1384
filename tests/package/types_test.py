"""The types of the installed package serve a strict checker: typed code of a user, and the examples.

    python types_test.py MODELS
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cache.cleanup)
        cls.command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache.name]

    def check(self, path, *options):
        done = subprocess.run([*self.command, *options, path], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_typed_code_of_a_user(self):
        status, text = self.check(HERE / "typed_use.py")
        self.assertEqual(status, 0, text)

    def test_the_examples(self):
        for name in ("run_model.py", "stream_tokens.py"):
            status, text = self.check(EXAMPLES / name, "--allow-untyped-defs", "--allow-untyped-calls")
            self.assertEqual(status, 0, text)

    def test_a_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "wrong.py")
            path.write_text("import redfuser\nredfuser.Session(1, devise='cpu')\nredfuser.SessionOptions().logid = 3\n")
            status, text = self.check(path)
        self.assertEqual(status, 1, text)
        self.assertIn('"devise"', text)
        self.assertIn('"int"', text)


if __name__ == "__main__":
    unittest.main()
