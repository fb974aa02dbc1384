"""Rewrites of how values travel: views there and back, copies, constants, names.

A rewrite is a function of (editor, node, random) that changes the graph at a node and says whether
it did. It never changes what the graph computes, up to rounding.
"""

import numpy as np

from rewrites_editor import Node


def _wire(editor, node, random, accept):
    """An input of the node whose type is accepted, as an index; None if there is none."""
    fit = [k for k, value in enumerate(node.inputs)
           if value in editor.types and accept(editor.types[value])]
    return int(random.choice(fit)) if fit else None


def _insert(accept):
    """A rewrite that puts what `make(editor, value, random)` returns on one input wire."""
    def decorate(make):
        def rewrite(editor, node, random):
            k = _wire(editor, node, random, accept)
            if k is None:
                return False
            value = make(editor, node.inputs[k], random)
            if value is None:
                return False
            node.inputs[k] = value
            return True
        rewrite.__name__ = make.__name__
        rewrite.__doc__ = make.__doc__
        return rewrite
    return decorate


def _is_float(t):
    return t.dtype == np.float32


def _is_tensor(t):
    return t.rank >= 1 and 0 not in t.shape


@_insert(lambda t: True)
def identity(editor, value, random):
    return editor.emit("Identity", [value], value)


@_insert(_is_float)
def cast_pair(editor, value, random):
    """float32 to float64 and back, or to float32."""
    if random.random() < 0.3:
        return editor.emit("Cast", [value], value, to=1)
    wide = editor.emit("Cast", [value], value, dtype=np.float64, to=11)
    return editor.emit("Cast", [wide], value, to=1)


@_insert(_is_tensor)
def transpose_pair(editor, value, random):
    rank = editor.types[value].rank
    order = [int(i) for i in random.permutation(rank)]
    shape = [editor.types[value].shape[i] for i in order]
    there = editor.emit("Transpose", [value], value, shape=shape, perm=order)
    return editor.emit("Transpose", [there], value, perm=[order.index(i) for i in range(rank)])


@_insert(lambda t: True)
def unsqueeze_pair(editor, value, random):
    shape = editor.types[value].shape
    axis = int(random.integers(0, len(shape) + 1))
    axes = editor.add_constant(np.array([axis], np.int64))
    wide = shape[:axis] + (1,) + shape[axis:]
    there = editor.emit("Unsqueeze", [value, axes], value, shape=wide)
    return editor.emit("Squeeze", [there, axes], value)


@_insert(_is_tensor)
def reshape_pair(editor, value, random):
    """Through one dimension, a merged or an extra one; back by Shape or by constant zeros."""
    shape = editor.types[value].shape
    rank = len(shape)
    back = editor.emit("Shape", [value], dtype=np.int64, shape=(rank,))
    kind = random.integers(0, 4)
    if kind == 0:
        target, there = [-1], (int(np.prod(shape)),)
    elif kind == 1:
        at = int(random.integers(0, rank + 1))
        target = [0] * at + [1] + [-1] * (at < rank)
        there = shape[:at] + (1,) + ((int(np.prod(shape[at:])),) if at < rank else ())
    elif kind == 2 and rank >= 2:
        target, there = [0] * (rank - 2) + [-1], shape[:-2] + (shape[-2] * shape[-1],)
    else:
        axis = int(random.integers(0, rank + 1))
        there = int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))
        flat = editor.emit("Flatten", [value], value, shape=there, axis=axis)
        return editor.emit("Reshape", [flat, back], value)
    middle = editor.add_constant(np.array(target, np.int64), as_node=bool(random.integers(2)))
    there = editor.emit("Reshape", [value, middle], value, shape=there)
    return editor.emit("Reshape", [there, back], value)


def split_transpose(editor, node, random):
    """One Transpose as two."""
    if node.op != "Transpose":
        return False
    value = node.inputs[0]
    rank = editor.types[value].rank
    order = list(node.attribute("perm", range(rank)[::-1]))
    first = [int(i) for i in random.permutation(rank)]
    shape = [editor.types[value].shape[i] for i in first]
    middle = editor.emit("Transpose", [value], value, shape=shape, perm=first)
    second = [first.index(i) for i in order]
    editor.replace(node, editor.emit("Transpose", [middle], node.outputs[0], perm=second))
    return True


def merge_views(editor, node, random):
    """Transpose of Transpose as one; Reshape of Reshape as the last."""
    before = editor.producer(node.inputs[0]) if node.inputs else None
    if before is None or before.op != node.op:
        return False
    value = before.inputs[0]
    if node.op == "Transpose":
        rank = editor.types[value].rank
        first = list(before.attribute("perm", range(rank)[::-1]))
        second = list(node.attribute("perm", range(rank)[::-1]))
        merged = editor.emit("Transpose", [value], node.outputs[0],
                             perm=[first[i] for i in second])
        editor.replace(node, merged)
        return True
    if node.op == "Reshape":
        target = editor.constant(node.inputs[1])
        if target is None or 0 in target:
            return False
        node.inputs[0] = value
        return True
    return False


BROADCASTING = {"Add", "Sub", "Mul", "Div", "Where"}


def expand(editor, node, random):
    """An operand brought to another operand's shape before the operator broadcasts it."""
    if node.op not in BROADCASTING or not node.outputs[0] in editor.types:
        return False
    k, other = random.choice(len(node.inputs), size=2, replace=False)
    value, target = node.inputs[k], node.inputs[other]
    if editor.types[target].rank == 0:
        return False
    sizes = editor.emit("Shape", [target], dtype=np.int64, shape=(editor.types[target].rank,))
    shape = np.broadcast_shapes(editor.types[value].shape, editor.types[target].shape)
    node.inputs[k] = editor.emit("Expand", [value, sizes], value, shape=shape)
    return True


def duplicate(editor, node, random):
    """A reader gets its own copy of a node."""
    if len(node.outputs) != 1 or "Random" in node.op:
        return False
    uses = editor.uses(node.outputs[0])
    if not uses:
        return False
    reader, k = uses[random.integers(0, len(uses))]
    copy = Node(node.op, list(node.inputs), [editor.name()], node.attributes, node.domain)
    editor.types[copy.outputs[0]] = editor.types[node.outputs[0]]
    editor.nodes.append(copy)
    reader.inputs[k] = copy.outputs[0]
    return True


def _constant_input(editor, node, random):
    fit = [k for k, value in enumerate(node.inputs) if value and
           editor.constant(value) is not None]
    return int(random.choice(fit)) if fit else None


def move_constant(editor, node, random):
    """An initializer as a Constant node, or the reverse."""
    k = _constant_input(editor, node, random)
    if k is None:
        return False
    value = node.inputs[k]
    node.inputs[k] = editor.add_constant(editor.constant(value), value in editor.initializers)
    return True


def unfold_constant(editor, node, random):
    """A constant computed from constants, exactly."""
    k = _constant_input(editor, node, random)
    if k is None:
        return False
    value = node.inputs[k]
    array = editor.constant(value)
    def constant(a):
        return editor.add_constant(a, bool(random.integers(2)))
    kind = random.integers(0, 4)
    if array.dtype == np.float32:
        if kind == 0 and np.all(np.abs(array) < 1e30):
            parts = "Mul", [constant(array * np.float32(2)), constant(np.float32(0.5))]
        elif kind == 1:
            parts = "Add", [constant(array), constant(np.float32(0))]
        elif kind == 2 and np.all(np.abs(array) < 1e30):
            parts = "Sub", [constant(array * np.float32(2)), constant(array)]
        else:
            wide = constant(array.astype(np.float64))
            node.inputs[k] = editor.emit("Cast", [wide], value, to=1)
            return True
    elif array.dtype == np.int64:
        if kind <= 1 and array.ndim == 1 and array.size > 1:
            ends = [constant(array[:1]), constant(array[1:])]
            node.inputs[k] = editor.emit("Concat", ends, value, axis=0)
            return True
        parts = "Add", [constant(array - 1), constant(np.int64(1))]
    else:
        return False
    node.inputs[k] = editor.emit(parts[0], parts[1], value)
    return True


def rename(editor, random):
    """Random names for all values but the graph's inputs and outputs, and for all nodes."""
    kept = set(editor.outputs) | {value.name for value in editor.model.graph.input} | {""}
    names = {}

    def renamed(value):
        if value in kept:
            return value
        if value not in names:
            letters = random.integers(97, 123, size=8)
            names[value] = "".join(map(chr, letters)) + str(len(names))
        return names[value]

    for node in editor.nodes:
        node.inputs = [renamed(value) for value in node.inputs]
        node.outputs = [renamed(value) for value in node.outputs]
        node.name = renamed("node " + node.name + str(id(node)))
    editor.initializers = {renamed(n): a for n, a in editor.initializers.items()}
    editor.types = {renamed(n): t for n, t in editor.types.items()}


WIRES = [identity, cast_pair, transpose_pair, unsqueeze_pair, reshape_pair, split_transpose,
         merge_views, expand, duplicate, move_constant, unfold_constant]
