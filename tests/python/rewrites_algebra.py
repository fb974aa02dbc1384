"""Rewrites by algebra: scales across products, quotients, masks."""

import numpy as np


def number(editor, value, random):
    return editor.add_constant(np.float32(value), bool(random.integers(2)))


def float_output(editor, node):
    output = node.outputs[0] if node.outputs else None
    return output in editor.types and editor.types[output].dtype == np.float32


def commute(editor, node, random):
    """a + b as b + a, and the like."""
    if node.op not in {"Add", "Mul", "And", "Or", "Equal", "Max", "Min"} or len(node.inputs) != 2:
        return False
    node.inputs.reverse()
    return True


def scaled_by(editor, node):
    """(value, factor) of value·factor or value/factor with a constant factor; None otherwise."""
    if node is None or node.op not in {"Mul", "Div"} or not float_output(editor, node):
        return None
    sides = (0, 1) if node.op == "Mul" else (1,)
    for side in sides:
        factor = editor.scalar(node.inputs[side])
        value = node.inputs[1 - side]
        if factor and editor.types[value].shape == editor.types[node.outputs[0]].shape:
            return value, factor if node.op == "Mul" else 1 / factor
    return None


def swap_quotient(editor, node, random):
    """x / c as x·(1/c) and the reverse; x / y as x·(1/y); 1/x and square roots in other words."""
    if not float_output(editor, node):
        return False
    output = node.outputs[0]
    scaled = scaled_by(editor, node)
    if scaled and node.op == "Div":
        result = editor.emit("Mul", [scaled[0], number(editor, scaled[1], random)], output)
    elif scaled:
        result = editor.emit("Div", [scaled[0], number(editor, 1 / scaled[1], random)], output)
    elif node.op == "Div":
        inverse = editor.emit("Reciprocal", [node.inputs[1]], node.inputs[1])
        result = editor.emit("Mul", [node.inputs[0], inverse], output)
    elif node.op == "Reciprocal":
        if random.integers(2):
            result = editor.emit("Pow", [node.inputs[0], number(editor, -1, random)], output)
        else:
            result = editor.emit("Div", [number(editor, 1, random), node.inputs[0]], output)
    elif node.op == "Sqrt":
        result = editor.emit("Pow", [node.inputs[0], number(editor, 0.5, random)], output)
    elif node.op == "Sub":
        minus = editor.emit("Neg", [node.inputs[1]], node.inputs[1])
        result = editor.emit("Add", [node.inputs[0], minus], output)
    elif node.op == "Pow" and editor.scalar(node.inputs[1]) == 2:
        result = editor.emit("Mul", [node.inputs[0], node.inputs[0]], output)
    elif node.op == "Neg":
        result = editor.emit("Mul", [node.inputs[0], number(editor, -1, random)], output)
    else:
        return False
    editor.replace(node, result)
    return True


def scale_before_product(editor, node, random):
    """c·(A B) as (cA) B, A (cB) or (√c A)(√c B)."""
    scaled = scaled_by(editor, node)
    product = editor.producer(scaled[0]) if scaled else None
    if product is None or product.op != "MatMul" or not editor.private(scaled[0]):
        return False
    a, b = product.inputs
    kind = random.integers(0, 3 if scaled[1] > 0 else 2)
    factor = np.sqrt(scaled[1]) if kind == 2 else scaled[1]
    if kind != 1:
        a = editor.emit("Mul", [a, number(editor, factor, random)], a)
    if kind != 0:
        b = editor.emit("Mul", [b, number(editor, factor, random)], b)
    editor.replace(node, editor.emit("MatMul", [a, b], scaled[0]))
    return True


def scale_after_product(editor, node, random):
    """(cA) B or A (cB) as c·(A B); without a scale, one that cancels: ½·((2A) B)."""
    if node.op != "MatMul":
        return False
    sides = [scaled_by(editor, editor.producer(value)) for value in node.inputs]
    k = int(random.integers(2)) if sides[0] and sides[1] else int(sides[0] is None)
    inputs, output = list(node.inputs), node.outputs[0]
    if sides[k]:
        inputs[k], factor = sides[k]
    else:
        inputs[k] = editor.emit("Mul", [inputs[k], number(editor, 2, random)], inputs[k])
        factor = 0.5
    product = editor.emit("MatMul", inputs, output)
    scale = number(editor, factor, random)
    editor.replace(node, editor.emit("Mul", [product, scale], output))
    return True


def scale_past_view(editor, node, random):
    """c·view(x) as view(c·x) and the reverse."""
    scaled = scaled_by(editor, node)
    views = {"Transpose", "Reshape"}
    if scaled:
        view = editor.producer(scaled[0])
        if view is None or view.op not in views:
            return False
        source = view.inputs[0]
        inner = editor.emit("Mul", [source, number(editor, scaled[1], random)], source)
        result = editor.emit(view.op, [inner, *view.inputs[1:]], node.outputs[0])
        editor.producer(result).attributes.update(view.attributes)
    elif node.op in views:
        inner = scaled_by(editor, editor.producer(node.inputs[0]))
        if not inner:
            return False
        view = editor.emit(node.op, [inner[0], *node.inputs[1:]], node.outputs[0])
        editor.producer(view).attributes.update(node.attributes)
        result = editor.emit("Mul", [view, number(editor, inner[1], random)], node.outputs[0])
    else:
        return False
    editor.replace(node, result)
    return True


def respell_product(editor, node, random):
    """A B as (Bᵀ Aᵀ)ᵀ, as an Einsum, or with a unit batch dimension."""
    if node.op != "MatMul" or not float_output(editor, node):
        return False
    a, b = node.inputs
    ranks = [editor.types[value].rank for value in (a, b)]
    output = node.outputs[0]
    if min(ranks) < 2:
        return False

    def swapped(value, like=None):
        shape = list(editor.types[like or value].shape)
        order = list(range(len(shape)))
        order[-2:] = order[-1], order[-2]
        shape[-2:] = shape[-1], shape[-2]
        if like:
            shape = editor.types[like].shape
        return editor.emit("Transpose", [value], value, shape=shape, perm=order)

    kind = random.choice(["transposed", "einsum", "unit batch"])
    if kind == "transposed":
        shape = list(editor.types[output].shape)
        shape[-2:] = shape[-1], shape[-2]
        product = editor.emit("MatMul", [swapped(b), swapped(a)], output, shape=shape)
        result = swapped(product, output)
    elif kind == "einsum":
        sizes = [editor.types[value].shape[-3::-1] for value in (a, b)]
        if any(left != right for left, right in zip(*sizes)):
            return False
        batch = ["uvwxyz"[8 - rank:] for rank in ranks]
        equation = f"{batch[0]}ij,{batch[1]}jk->{max(batch, key=len)}ik"
        result = editor.emit("Einsum", [a, b], output, equation=equation)
    else:
        zero = editor.add_constant(np.array([0], np.int64))
        wide = [editor.emit("Unsqueeze", [v, zero], v, shape=(1, *editor.types[v].shape))
                if rank == max(ranks) else v for v, rank in zip((a, b), ranks)]
        product = editor.emit("MatMul", wide, output, shape=(1, *editor.types[output].shape))
        result = editor.emit("Squeeze", [product, zero], output)
    editor.replace(node, result)
    return kind


def move_mask(editor, node, random):
    """where(m, x, -∞) as x + where(m, 0, -∞) and the reverse, for any number below -10³⁰."""
    if node.op == "Where" and float_output(editor, node):
        mask, value, low = node.inputs
        lowest = editor.scalar(low)
        same = editor.types[value].shape == editor.types[node.outputs[0]].shape
        if lowest is None or lowest > -1e30 or not same or editor.scalar(value) is not None:
            return False
        bias = editor.emit("Where", [mask, number(editor, 0, random), low], low,
                           shape=editor.types[mask].shape)
        result = editor.emit("Add", [value, bias], node.outputs[0])
    elif node.op == "Add" and float_output(editor, node):
        for k, value in enumerate(node.inputs):
            where = editor.producer(value)
            if where is None or where.op != "Where":
                continue
            if editor.scalar(where.inputs[1]) == 0 and (editor.scalar(where.inputs[2]) or 0) < -1e30:
                result = editor.emit("Where", [where.inputs[0], node.inputs[1 - k],
                                               where.inputs[2]], node.outputs[0])
                break
        else:
            return False
    else:
        return False
    editor.replace(node, result)
    return True


ALGEBRA = [commute, swap_quotient, scale_before_product, scale_after_product, scale_past_view,
           respell_product, move_mask]
