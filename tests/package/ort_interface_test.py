"""The interface of the ONNX Runtime at hand, name by name: each is here, or docs/python.md says why not.

    python ort_interface_test.py MODELS
"""

import inspect
import pathlib
import re
import sys
import unittest

import onnxruntime

import redfuser

sys.argv.pop(1)
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
CLASSES = ("InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding", "ModelMetadata", "NodeArg")
ENUMERATIONS = ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel")
# Objects of classes that are not here.
PARAMETERS_THAT_ARE_NOT_HERE = {"memory_info"}
# Made from such objects alone.
CONSTRUCTORS_THAT_ARE_NOT_HERE = {"OrtValue"}


def names(module):
    """Public names of the module, and "Class.name" of its classes."""
    found = [name for name in dir(module) if not name.startswith("_")]
    for part in CLASSES:
        found += [f"{part}.{name}" for name in dir(getattr(module, part)) if not name.startswith("_")]
    for part in ENUMERATIONS:
        found += [f"{part}.{name}" for name in getattr(module, part).__members__]
    return set(found)


def object_named(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def explained():
    """The names of the table of docs/python.md."""
    table = DOCUMENT.read_text().split("and this package does not:")[1].split("\n\n")[1]
    return {name for row in table.splitlines()[2:] for name in re.findall("`([^`]+)`", row.split(" | ")[0])}


class Interface(unittest.TestCase):
    def test_every_name_is_here_or_explained(self):
        session = redfuser.InferenceSession(redfuser.Model.parse(
            '<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }'), providers=["cpu"])
        # Of instances: attributes without a class's.
        ours = names(redfuser)
        ours |= {f"ModelMetadata.{name}" for name in vars(session.get_modelmeta())}
        ours |= {f"NodeArg.{name}" for name in vars(session.get_inputs()[0])}
        theirs, reasons = names(onnxruntime), explained()
        self.assertEqual(sorted(theirs - ours - reasons), [], "neither here nor in docs/python.md")
        self.assertEqual(sorted(reasons & ours), [], "here, although docs/python.md says why not")
        self.assertEqual(sorted(reasons - theirs), [], "explained, although ONNX Runtime does not have it")

    def test_parameters_have_the_same_names_in_the_same_order(self):
        for name in sorted(names(onnxruntime) & names(redfuser) - CONSTRUCTORS_THAT_ARE_NOT_HERE):
            try:
                theirs = inspect.signature(object_named(onnxruntime, name)).parameters.values()
            except (TypeError, ValueError):  # bound from C++
                continue
            wanted = [parameter.name for parameter in theirs
                      if parameter.kind == parameter.POSITIONAL_OR_KEYWORD and parameter.name not in
                      PARAMETERS_THAT_ARE_NOT_HERE]
            taken = inspect.signature(object_named(redfuser, name)).parameters
            if any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values()):
                continue
            with self.subTest(name):
                self.assertEqual([parameter for parameter in taken if parameter in wanted], wanted)


if __name__ == "__main__":
    unittest.main()
