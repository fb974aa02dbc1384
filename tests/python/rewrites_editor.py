"""An ONNX graph as plain Python lists, open to edits, with the type of every value."""

import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

from models import quiet_session


@dataclasses.dataclass(eq=False)
class Node:
    op: str
    inputs: list
    outputs: list
    attributes: dict  # name: AttributeProto
    domain: str = ""
    name: str = ""

    def attribute(self, name, default=None):
        found = self.attributes.get(name)
        return default if found is None else helper.get_attribute_value(found)


@dataclasses.dataclass(frozen=True)
class Type:
    dtype: np.dtype
    shape: tuple  # for the example inputs; other inputs may give other sizes, never another rank

    @property
    def rank(self):
        return len(self.shape)


def value_types(path, feed):
    """The type of every value of the model at `path`, from a run on `feed`."""
    model = onnx.load(path)
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = dict(zip(names, quiet_session(model.SerializeToString()).run(None, feed)), **feed)
    for tensor in model.graph.initializer:
        values[tensor.name] = numpy_helper.to_array(tensor)
    return {name: Type(value.dtype, value.shape) for name, value in values.items()}


class Editor:
    """Nodes in any order: `finish` sorts them. Every value has one producer at any time."""

    def __init__(self, model, types):
        self.model = model
        self.types = dict(types)
        self.opset = next(o.version for o in model.opset_import if o.domain == "")
        self.nodes = [Node(n.op_type, list(n.input), list(n.output),
                           {a.name: a for a in n.attribute}, n.domain, n.name)
                      for n in model.graph.node]
        self.initializers = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.outputs = [output.name for output in model.graph.output]
        self.fresh = 0

    def producer(self, value):
        return next((node for node in self.nodes if value in node.outputs), None)

    def uses(self, value):
        """(node, input index) of every reader."""
        return [(node, k) for node in self.nodes for k, name in enumerate(node.inputs)
                if name == value]

    def private(self, value):
        """One node reads the value, once, and nobody outside does."""
        return value not in self.outputs and len(self.uses(value)) == 1

    def constant(self, value):
        """The contents of a constant, or None."""
        if value in self.initializers:
            return self.initializers[value]
        node = self.producer(value)
        if node is None or node.op != "Constant" or "value" not in node.attributes:
            return None
        return numpy_helper.to_array(node.attribute("value"))

    def scalar(self, value):
        """The number in a float constant of one element, or None."""
        array = self.constant(value) if value else None
        one = array is not None and array.size == 1 and array.dtype == np.float32
        return float(array.reshape(())) if one and array.ndim <= 1 else None

    def finite_mask(self):
        """Some constant stands for -∞ without being it."""
        values = list(self.initializers) + [n.outputs[0] for n in self.nodes if n.op == "Constant"]
        arrays = [array for array in map(self.constant, values) if array is not None]
        return any(np.any((a < -1e30) & (a > -np.inf)) for a in arrays if a.dtype.kind == "f")

    def name(self):
        self.fresh += 1
        return f"rewritten_{self.fresh}"

    def emit(self, op, inputs, like=None, dtype=None, shape=None, **attributes):
        """Adds a node; its output has the type of `like` where dtype and shape do not say."""
        output = self.name()
        base = self.types.get(like)
        self.types[output] = Type(np.dtype(dtype) if dtype is not None else base.dtype,
                                  tuple(shape) if shape is not None else base.shape)
        protos = {key: helper.make_attribute(key, value) for key, value in attributes.items()}
        self.nodes.append(Node(op, list(inputs), [output], protos, name=output))
        return output

    def add_constant(self, array, as_node=False):
        array = np.asarray(array)
        if as_node:
            return self.emit("Constant", [], dtype=array.dtype, shape=array.shape,
                             value=numpy_helper.from_array(array))
        name = self.name()
        self.initializers[name] = array
        self.types[name] = Type(array.dtype, array.shape)
        return name

    def reduced(self, op, value, axes, keepdims=1):
        """A reduction over constant axes, in the spelling of the model's opset."""
        shape = self.types[value].shape
        axes = sorted(axis % len(shape) for axis in axes)
        kept = [1 if i in axes else size for i, size in enumerate(shape)]
        if not keepdims:
            kept = [size for i, size in enumerate(shape) if i not in axes]
        as_input = self.opset >= (13 if op == "ReduceSum" else 18)
        if as_input:
            inputs = [value, self.add_constant(np.array(axes, np.int64))]
            return self.emit(op, inputs, value, shape=kept, keepdims=keepdims)
        return self.emit(op, [value], value, shape=kept, keepdims=keepdims, axes=axes)

    def reduction_axes(self, node):
        """Constant axes of a reduction node; None if they are not known."""
        axes = node.attribute("axes")
        if axes is None and len(node.inputs) > 1:
            axes = self.constant(node.inputs[1])
        return None if axes is None else [int(axis) for axis in axes]

    def redirect(self, old, new, but=()):
        """Readers of `old` read `new`, but for the nodes in `but`; graph outputs keep the name."""
        for node in self.nodes:
            if node not in but:
                node.inputs = [new if name == old else name for name in node.inputs]

    def replace(self, node, value):
        """`value` takes the place of the node's first output."""
        self.nodes.remove(node)
        self.redirect(node.outputs[0], value)
        if node.outputs[0] in self.outputs:
            self.nodes.append(Node("Identity", [value], [node.outputs[0]], {}))

    def remove_dead(self):
        needed = set(self.outputs)
        stack = list(needed)
        producers = {name: node for node in self.nodes for name in node.outputs if name}
        while stack:
            node = producers.get(stack.pop())
            for name in node.inputs if node else []:
                if name and name not in needed:
                    needed.add(name)
                    stack.append(name)
        self.nodes = [node for node in self.nodes if needed.intersection(node.outputs)]
        self.initializers = {n: a for n, a in self.initializers.items() if n in needed}

    def sort(self, choose):
        """Topological order; `choose` picks the next of the nodes that are ready."""
        producers = {name: node for node in self.nodes for name in node.outputs if name}
        readers, missing, order = {}, {}, []
        for node in self.nodes:
            before = {id(producers[name]): producers[name] for name in node.inputs
                      if name in producers}
            missing[id(node)] = len(before)
            for producer in before:
                readers.setdefault(producer, []).append(node)
        ready = [node for node in self.nodes if missing[id(node)] == 0]
        while ready:
            node = ready.pop(choose(len(ready)))
            order.append(node)
            for reader in readers.get(id(node), []):
                missing[id(reader)] -= 1
                if missing[id(reader)] == 0:
                    ready.append(reader)
        assert len(order) == len(self.nodes), "a cycle"
        self.nodes = order

    def finish(self, choose=lambda count: 0):
        """The edited model."""
        self.remove_dead()
        self.sort(choose)
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.node[:], model.graph.initializer[:], model.graph.value_info[:]
        for name, array in self.initializers.items():
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        for node in self.nodes:
            proto = model.graph.node.add(op_type=node.op, domain=node.domain, name=node.name)
            proto.input.extend(node.inputs)
            proto.output.extend(node.outputs)
            proto.attribute.extend(node.attributes.values())
        return model
