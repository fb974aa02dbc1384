"""Softmax, layer norms and means from their parts, in many spellings."""

import numpy as np

from rewrites_algebra import number


def _quotient(editor, x, s, axis):
    e = editor.emit("Exp", [s], x)
    return editor.emit("Div", [e, editor.reduced("ReduceSum", e, axis)], x)


def _reciprocal(editor, x, s, axis):
    e = editor.emit("Exp", [s], x)
    total = editor.reduced("ReduceSum", e, axis)
    return editor.emit("Mul", [editor.emit("Reciprocal", [total], total), e], x)


def _log_sum(editor, s, axis):
    total = editor.reduced("ReduceSum", editor.emit("Exp", [s], s), axis)
    return editor.emit("Log", [total], total)


def _minus_top_and_log(editor, x, s, axis):
    top = editor.producer(s).inputs[1]
    away = editor.emit("Add", [top, _log_sum(editor, s, axis)], top)
    return editor.emit("Exp", [editor.emit("Sub", [x, away], x)], x)


def _minus_log(editor, x, s, axis):
    return editor.emit("Exp", [editor.emit("Sub", [s, _log_sum(editor, s, axis)], x)], x)


def _shift_before(editor, x, s, axis):
    return editor.emit("Softmax", [s], x, axis=axis[0])


def _log_softmax(editor, x, s, axis):
    return editor.emit("Exp", [editor.emit("LogSoftmax", [x], x, axis=axis[0])], x)


def _minus_reduced(editor, x, source, reduced):
    return editor.emit("Exp", [editor.emit("Sub", [source, reduced], x)], x)


def _log_sum_exp(editor, x, s, axis):
    return _minus_reduced(editor, x, x, editor.reduced("ReduceLogSumExp", x, axis))


def _log_sum_exp_of_shifted(editor, x, s, axis):
    return _minus_reduced(editor, x, s, editor.reduced("ReduceLogSumExp", s, axis))


def _log_sum_of_exp(editor, x, s, axis):
    e = editor.emit("Exp", [s], x)
    return _minus_reduced(editor, x, s, editor.reduced("ReduceLogSum", e, axis))


# softmax(x) from x and s = x - max x.
SOFTMAX = {f.__name__[1:]: f for f in [
    _quotient, _reciprocal, _minus_top_and_log, _minus_log, _shift_before, _log_softmax,
    _log_sum_exp, _log_sum_exp_of_shifted, _log_sum_of_exp]}
# Where a row is masked by finite numbers alone, top + log Σ absorbs the logarithm: the result is no
# softmax, and only rows that are never masked so would keep the meaning.
WITHOUT_FINITE_MASK = {"minus_top_and_log", "log_sum_exp"}


def spell_softmax(editor, node, random):
    """Softmax in one of the spellings above."""
    if node.op != "Softmax":
        return None
    x, axis = node.inputs[0], [node.attribute("axis", -1)]
    kinds = [k for k in SOFTMAX if k not in WITHOUT_FINITE_MASK or not editor.finite_mask()]
    kind = random.choice(kinds)
    s = editor.emit("Sub", [x, editor.reduced("ReduceMax", x, axis)], x)
    editor.replace(node, SOFTMAX[kind](editor, x, s, axis))
    return kind


def _mean(editor, value, axes, random):
    kind = random.integers(0, 3)
    if kind == 0:
        return editor.reduced("ReduceMean", value, axes)
    total = editor.reduced("ReduceSum", value, axes)
    size = np.prod([editor.types[value].shape[axis] for axis in axes])
    if kind == 1:
        return editor.emit("Div", [total, number(editor, size, random)], total)
    return editor.emit("Mul", [total, number(editor, 1 / size, random)], total)


def _square(editor, value, random):
    if random.integers(2):
        return editor.emit("Mul", [value, value], value)
    return editor.emit("Pow", [value, number(editor, 2, random)], value)


def _times_inverse_root(editor, value, variance, random):
    kind = random.choice(["div", "pow", "one over", "reciprocal"])
    root = editor.emit("Sqrt", [variance], variance)
    if kind == "div":
        return editor.emit("Div", [value, root], value), kind
    if kind == "pow":
        inverse = editor.emit("Pow", [variance, number(editor, -0.5, random)], variance)
    elif kind == "one over":
        inverse = editor.emit("Div", [number(editor, 1, random), root], variance)
    else:
        inverse = editor.emit("Reciprocal", [root], variance)
    return editor.emit("Mul", [value, inverse], value), kind


def spell_layer_norm(editor, node, random):
    """LayerNormalization from its parts: three forms of the variance, any order of the rest."""
    if node.op != "LayerNormalization":
        return None
    x, scale = node.inputs[:2]
    rank = editor.types[x].rank
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    if any(output and editor.uses(output) for output in node.outputs[1:]):
        return None
    mean = _mean(editor, x, axes, random)
    centred = editor.emit("Sub", [x, mean], x)
    form = random.choice(["one difference", "two differences", "of squares"])
    if form == "of squares":
        second = _mean(editor, _square(editor, x, random), axes, random)
        variance = editor.emit("Sub", [second, _square(editor, mean, random)], mean)
    else:
        other = centred if form == "one difference" else editor.emit("Sub", [x, mean], x)
        variance = _mean(editor, _square(editor, other, random), axes, random)
    epsilon = number(editor, node.attribute("epsilon", 1e-5), random)
    variance = editor.emit("Add", [variance, epsilon], variance)
    result, root = _times_inverse_root(editor, centred, variance, random)
    result = editor.emit("Mul", [result, scale] if random.integers(2) else [scale, result], x)
    if len(node.inputs) > 2 and node.inputs[2]:
        result = editor.emit("Add", [result, node.inputs[2]], x)
    editor.replace(node, result)
    return f"{form}, {root}"


def spell_mean(editor, node, random):
    """A mean as a sum and a quotient; a mean of squares through ReduceSumSquare or ReduceL2."""
    if node.op != "ReduceMean":
        return None
    x, axes = node.inputs[0], editor.reduction_axes(node)
    if axes is None or not node.attribute("keepdims", 1):
        return None
    square = editor.producer(x)
    squared = square is not None and square.op == "Pow" and editor.scalar(square.inputs[1]) == 2
    kind = random.choice(["ReduceSumSquare", "ReduceL2", "plain"]) if squared else "plain"
    if kind == "plain":
        result = _mean(editor, x, axes, random)
    else:
        total = editor.reduced(kind, square.inputs[0], axes)
        if kind == "ReduceL2":
            total = editor.emit("Mul", [total, total], total)
        size = np.prod([editor.types[x].shape[axis] for axis in axes])
        result = editor.emit("Div", [total, number(editor, size, random)], total)
    editor.replace(node, result)
    return kind


SPELLINGS = [spell_softmax, spell_layer_norm, spell_mean]
