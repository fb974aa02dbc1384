"""Rewrites by algebra: scales across products, quotients, softmax and norms in other spellings."""

import numpy as np


def _number(editor, value, random):
    return editor.add_constant(np.float32(value), bool(random.integers(2)))


def _float_output(editor, node):
    output = node.outputs[0] if node.outputs else None
    return output in editor.types and editor.types[output].dtype == np.float32


def commute(editor, node, random):
    """a + b as b + a, and the like."""
    if node.op not in {"Add", "Mul", "And", "Or", "Equal", "Max", "Min"} or len(node.inputs) != 2:
        return False
    node.inputs.reverse()
    return True


def _scaled(editor, node):
    """(value, factor) of value·factor or value/factor with a constant factor; None otherwise."""
    if node is None or node.op not in {"Mul", "Div"} or not _float_output(editor, node):
        return None
    sides = (0, 1) if node.op == "Mul" else (1,)
    for side in sides:
        number = editor.scalar(node.inputs[side])
        value = node.inputs[1 - side]
        if number and editor.types[value].shape == editor.types[node.outputs[0]].shape:
            return value, number if node.op == "Mul" else 1 / number
    return None


def swap_quotient(editor, node, random):
    """x / c as x·(1/c) and the reverse; x / y as x·(1/y); 1/x and square roots in other words."""
    if not _float_output(editor, node):
        return False
    output = node.outputs[0]
    scaled = _scaled(editor, node)
    if scaled and node.op == "Div":
        result = editor.emit("Mul", [scaled[0], _number(editor, scaled[1], random)], output)
    elif scaled:
        result = editor.emit("Div", [scaled[0], _number(editor, 1 / scaled[1], random)], output)
    elif node.op == "Div":
        inverse = editor.emit("Reciprocal", [node.inputs[1]], node.inputs[1])
        result = editor.emit("Mul", [node.inputs[0], inverse], output)
    elif node.op == "Reciprocal":
        if random.integers(2):
            result = editor.emit("Pow", [node.inputs[0], _number(editor, -1, random)], output)
        else:
            result = editor.emit("Div", [_number(editor, 1, random), node.inputs[0]], output)
    elif node.op == "Sqrt":
        result = editor.emit("Pow", [node.inputs[0], _number(editor, 0.5, random)], output)
    elif node.op == "Sub":
        minus = editor.emit("Neg", [node.inputs[1]], node.inputs[1])
        result = editor.emit("Add", [node.inputs[0], minus], output)
    elif node.op == "Pow" and editor.scalar(node.inputs[1]) == 2:
        result = editor.emit("Mul", [node.inputs[0], node.inputs[0]], output)
    elif node.op == "Neg":
        result = editor.emit("Mul", [node.inputs[0], _number(editor, -1, random)], output)
    else:
        return False
    editor.replace(node, result)
    return True


def scale_before_product(editor, node, random):
    """c·(A B) as (cA) B, A (cB) or (√c A)(√c B)."""
    scaled = _scaled(editor, node)
    product = editor.producer(scaled[0]) if scaled else None
    if product is None or product.op != "MatMul" or not editor.private(scaled[0]):
        return False
    a, b = product.inputs
    kind = random.integers(0, 3 if scaled[1] > 0 else 2)
    factor = np.sqrt(scaled[1]) if kind == 2 else scaled[1]
    if kind != 1:
        a = editor.emit("Mul", [a, _number(editor, factor, random)], a)
    if kind != 0:
        b = editor.emit("Mul", [b, _number(editor, factor, random)], b)
    editor.replace(node, editor.emit("MatMul", [a, b], scaled[0]))
    return True


def scale_after_product(editor, node, random):
    """(cA) B or A (cB) as c·(A B); without a scale, one that cancels: ½·((2A) B)."""
    if node.op != "MatMul":
        return False
    sides = [_scaled(editor, editor.producer(value)) for value in node.inputs]
    k = int(random.integers(2)) if sides[0] and sides[1] else int(sides[0] is None)
    inputs, output = list(node.inputs), node.outputs[0]
    if sides[k]:
        inputs[k], factor = sides[k]
    else:
        inputs[k] = editor.emit("Mul", [inputs[k], _number(editor, 2, random)], inputs[k])
        factor = 0.5
    product = editor.emit("MatMul", inputs, output)
    scale = _number(editor, factor, random)
    editor.replace(node, editor.emit("Mul", [product, scale], output))
    return True


def scale_past_view(editor, node, random):
    """c·view(x) as view(c·x) and the reverse."""
    scaled = _scaled(editor, node)
    views = {"Transpose", "Reshape"}
    if scaled:
        view = editor.producer(scaled[0])
        if view is None or view.op not in views:
            return False
        source = view.inputs[0]
        inner = editor.emit("Mul", [source, _number(editor, scaled[1], random)], source)
        result = editor.emit(view.op, [inner, *view.inputs[1:]], node.outputs[0])
        editor.producer(result).attributes.update(view.attributes)
    elif node.op in views:
        inner = _scaled(editor, editor.producer(node.inputs[0]))
        if not inner:
            return False
        view = editor.emit(node.op, [inner[0], *node.inputs[1:]], node.outputs[0])
        editor.producer(view).attributes.update(node.attributes)
        result = editor.emit("Mul", [view, _number(editor, inner[1], random)], node.outputs[0])
    else:
        return False
    editor.replace(node, result)
    return True


def respell_product(editor, node, random):
    """A B as (Bᵀ Aᵀ)ᵀ, as an Einsum, or with a unit batch dimension."""
    if node.op != "MatMul" or not _float_output(editor, node):
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

    kind = random.integers(0, 3)
    if kind == 0:
        shape = list(editor.types[output].shape)
        shape[-2:] = shape[-1], shape[-2]
        product = editor.emit("MatMul", [swapped(b), swapped(a)], output, shape=shape)
        result = swapped(product, output)
    elif kind == 1:
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
    return True


def move_mask(editor, node, random):
    """where(m, x, -∞) as x + where(m, 0, -∞) and the reverse, for any number below -10³⁰."""
    if node.op == "Where" and _float_output(editor, node):
        mask, value, low = node.inputs
        number = editor.scalar(low)
        same = editor.types[value].shape == editor.types[node.outputs[0]].shape
        if number is None or number > -1e30 or not same or editor.scalar(value) is not None:
            return False
        bias = editor.emit("Where", [mask, _number(editor, 0, random), low], low,
                           shape=editor.types[mask].shape)
        result = editor.emit("Add", [value, bias], node.outputs[0])
    elif node.op == "Add" and _float_output(editor, node):
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


def spell_softmax(editor, node, random):
    """Softmax from its parts, in one of eight spellings."""
    if node.op != "Softmax":
        return False
    x, axis = node.inputs[0], [node.attribute("axis", -1)]

    def shifted():
        return editor.emit("Sub", [x, editor.reduced("ReduceMax", x, axis)], x)

    def exp(value):
        return editor.emit("Exp", [value], x)

    kind = random.integers(0, 8)
    if kind == 0:
        e = exp(shifted())
        result = editor.emit("Div", [e, editor.reduced("ReduceSum", e, axis)], x)
    elif kind == 1:
        e = exp(shifted())
        total = editor.reduced("ReduceSum", e, axis)
        result = editor.emit("Mul", [editor.emit("Reciprocal", [total], total), e], x)
    elif kind == 2:
        top = editor.reduced("ReduceMax", x, axis)
        total = editor.reduced("ReduceSum", exp(editor.emit("Sub", [x, top], x)), axis)
        log = editor.emit("Log", [total], total)
        result = exp(editor.emit("Sub", [x, editor.emit("Add", [top, log], top)], x))
    elif kind == 3:
        s = shifted()
        total = editor.reduced("ReduceSum", exp(s), axis)
        result = exp(editor.emit("Sub", [s, editor.emit("Log", [total], total)], x))
    elif kind == 4:
        result = editor.emit("Softmax", [shifted()], x, axis=axis[0])
    elif kind == 5:
        result = exp(editor.emit("LogSoftmax", [x], x, axis=axis[0]))
    elif kind == 6:
        s = shifted()
        result = exp(editor.emit("Sub", [s, editor.reduced("ReduceLogSumExp", s, axis)], x))
    else:
        s = shifted()
        result = exp(editor.emit("Sub", [s, editor.reduced("ReduceLogSum", exp(s), axis)], x))
    editor.replace(node, result)
    return True


def _mean(editor, value, axes, random):
    kind = random.integers(0, 3)
    if kind == 0:
        return editor.reduced("ReduceMean", value, axes)
    total = editor.reduced("ReduceSum", value, axes)
    size = np.prod([editor.types[value].shape[axis] for axis in axes])
    if kind == 1:
        return editor.emit("Div", [total, _number(editor, size, random)], total)
    return editor.emit("Mul", [total, _number(editor, 1 / size, random)], total)


def _square(editor, value, random):
    if random.integers(2):
        return editor.emit("Mul", [value, value], value)
    return editor.emit("Pow", [value, _number(editor, 2, random)], value)


def _times_inverse_root(editor, value, variance, random):
    kind = random.integers(0, 4)
    root = editor.emit("Sqrt", [variance], variance)
    if kind == 0:
        return editor.emit("Div", [value, root], value)
    if kind == 1:
        inverse = editor.emit("Pow", [variance, _number(editor, -0.5, random)], variance)
    elif kind == 2:
        inverse = editor.emit("Div", [_number(editor, 1, random), root], variance)
    else:
        inverse = editor.emit("Reciprocal", [root], variance)
    return editor.emit("Mul", [value, inverse], value)


def spell_layer_norm(editor, node, random):
    """LayerNormalization from its parts: two forms of the variance, any order of the rest."""
    if node.op != "LayerNormalization":
        return False
    x, scale = node.inputs[:2]
    rank = editor.types[x].rank
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    if any(output and editor.uses(output) for output in node.outputs[1:]):
        return False
    mean = _mean(editor, x, axes, random)
    centred = editor.emit("Sub", [x, mean], x)
    if random.integers(3):
        other = centred if random.integers(2) else editor.emit("Sub", [x, mean], x)
        variance = _mean(editor, _square(editor, other, random), axes, random)
    else:
        second = _mean(editor, _square(editor, x, random), axes, random)
        variance = editor.emit("Sub", [second, _square(editor, mean, random)], mean)
    epsilon = _number(editor, node.attribute("epsilon", 1e-5), random)
    variance = editor.emit("Add", [variance, epsilon], variance)
    result = _times_inverse_root(editor, centred, variance, random)
    result = editor.emit("Mul", [result, scale] if random.integers(2) else [scale, result], x)
    if len(node.inputs) > 2 and node.inputs[2]:
        result = editor.emit("Add", [result, node.inputs[2]], x)
    editor.replace(node, result)
    return True


def spell_mean(editor, node, random):
    """A mean as a sum and a quotient; a mean of squares through ReduceSumSquare or ReduceL2."""
    if node.op != "ReduceMean":
        return False
    x, axes = node.inputs[0], editor.reduction_axes(node)
    if axes is None or not node.attribute("keepdims", 1):
        return False
    square = editor.producer(x)
    squared = square is not None and square.op == "Pow" and editor.scalar(square.inputs[1]) == 2
    if squared and random.integers(2):
        source = square.inputs[0]
        if random.integers(2):
            total = editor.reduced("ReduceSumSquare", source, axes)
        else:
            length = editor.reduced("ReduceL2", source, axes)
            total = editor.emit("Mul", [length, length], length)
        size = np.prod([editor.types[x].shape[axis] for axis in axes])
        result = editor.emit("Div", [total, _number(editor, size, random)], total)
    else:
        result = _mean(editor, x, axes, random)
    editor.replace(node, result)
    return True


ALGEBRA = [commute, swap_quotient, scale_before_product, scale_after_product, scale_past_view,
           respell_product, move_mask, spell_softmax, spell_layer_norm, spell_mean]
