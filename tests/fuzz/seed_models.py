"""Small models to start a fuzzer from: ONNX's own node tests, as they are and with the integers,
truth values and texts of their test data as initializers.

    python seed_models.py FOLDER            the models
    python seed_models.py FOLDER --edges    and each with one number at an edge of its type
"""

import copy
import pathlib
import sys

import numpy
import onnx
import onnx.backend.test
from onnx import numpy_helper

LARGEST = 1200  # bytes: small models run fast
INTEGERS = (0, -1, 1, 3, 1 << 31, (1 << 63) - 1, -(1 << 63))
NUMBERS = (0.0, -1.0, 1e30, float("inf"), float("nan"))


def with_initializers(model, folder):
    """The model with what is no float among its inputs; None if there is no such input."""
    result = copy.deepcopy(model)
    for i, info in enumerate(model.graph.input):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if not path.exists() or not info.type.HasField("tensor_type"):
            continue
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            continue
        tensor.name = info.name
        result.graph.initializer.append(tensor)
        result.graph.input.remove(next(v for v in result.graph.input if v.name == info.name))
    return result if len(result.graph.initializer) > len(model.graph.initializer) else None


def edit_list(values, edges):
    """Sets one element after the other to every edge, and back."""
    for i, before in enumerate(list(values)[:8]):
        for edge in edges:
            values[i] = edge
            yield
        values[i] = before


def edit_attribute(attribute):
    if attribute.type == onnx.AttributeProto.INT:
        before = attribute.i
        for attribute.i in INTEGERS:
            yield
        attribute.i = before
    if attribute.type == onnx.AttributeProto.FLOAT:
        before = attribute.f
        for attribute.f in NUMBERS:
            yield
        attribute.f = before
    yield from edit_list(attribute.ints, INTEGERS)
    yield from edit_list(attribute.floats, NUMBERS)
    if attribute.HasField("t"):
        yield from edit_tensor(attribute.t)
    for node in attribute.g.node:
        yield from edit_node(node)


def edit_node(node):
    for attribute in node.attribute:
        yield from edit_attribute(attribute)


def edit_tensor(tensor):
    if tensor.data_type == onnx.TensorProto.STRING or not tensor.data_type:
        return
    before = copy.deepcopy(tensor)
    values = numpy_helper.to_array(tensor).copy()
    if values.dtype.kind not in "iuf" or numpy.isnan(values.astype(numpy.float64)).any():
        return
    edges = NUMBERS if values.dtype.kind == "f" else INTEGERS
    for _ in edit_list(values.reshape(-1), [numpy.array(e).astype(values.dtype) for e in edges]):
        tensor.CopyFrom(numpy_helper.from_array(values, before.name))
        yield
    tensor.CopyFrom(before)
    yield from edit_list(tensor.dims, INTEGERS)


def edit_model(model):
    for node in model.graph.node:
        yield from edit_node(node)
    for tensor in model.graph.initializer:
        yield from edit_tensor(tensor)
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            before = dim.dim_value
            for dim.dim_value in INTEGERS:
                yield
            dim.dim_value = before


def main():
    folder = pathlib.Path(sys.argv[1])
    edges = "--edges" in sys.argv[2:]
    numpy.seterr(all="ignore")
    data = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    count = 0

    def write(model, name):
        nonlocal count
        content = model.SerializeToString()
        if len(content) <= LARGEST:
            (folder / name).write_bytes(content)
            count += 1

    for path in sorted(data.rglob("model.onnx")):
        if path.stat().st_size > LARGEST:
            continue
        name = f"{path.parent.parent.name}.{path.parent.name}"
        model = onnx.ModelProto.FromString(path.read_bytes())
        fixed = with_initializers(model, path.parent)
        for variant, kind in ((model, ""), (fixed, ".fixed")):
            if variant is None:
                continue
            write(variant, name + kind)
            for i, _ in enumerate(edit_model(variant) if edges else ()):
                write(variant, f"{name}{kind}.{i}")
    print(f"{count} models in {folder}")


if __name__ == "__main__":
    main()
