"""Random rewrites of a model, several composed, that keep what it computes."""

import onnx

from rewrites_algebra import ALGEBRA
from rewrites_editor import Editor
from rewrites_wires import WIRES, rename

REWRITES = {rewrite.__name__: rewrite for rewrite in ALGEBRA + WIRES}
# How often a rewrite is applied where it could be.
RATES = {"algebra": (0.3, 0.6, 1.0), "wires": (0.03, 0.1, 0.3)}


def apply(editor, name, rate, random):
    """The number of nodes at which the rewrite changed something."""
    rewrite = REWRITES[name]
    done = 0
    for node in list(editor.nodes):
        if random.random() < rate and any(node is other for other in editor.nodes):
            done += bool(rewrite(editor, node, random))
    editor.remove_dead()
    return done


def compose(model, types, random):
    """A rewritten model, and what was done to it as text."""
    editor = Editor(model, types)
    chosen = list(random.choice([r.__name__ for r in ALGEBRA], size=random.integers(2, 6),
                                replace=False))
    chosen += random.choice([r.__name__ for r in WIRES], size=random.integers(1, 4), replace=False)
    random.shuffle(chosen)
    done = []
    for name in chosen:
        kind = "wires" if REWRITES[name] in WIRES else "algebra"
        count = apply(editor, name, random.choice(RATES[kind]), random)
        if count:
            done.append(f"{name} x{count}")
    if random.random() < 0.5:
        rename(editor, random)
        done.append("rename")
    rewritten = editor.finish(lambda count: int(random.integers(count)))
    onnx.checker.check_model(rewritten)
    return rewritten, ", ".join(done)


def single(model, types, name, rate, random):
    """The model with one rewrite; None if it applies nowhere."""
    editor = Editor(model, types)
    count = apply(editor, name, rate, random)
    if not count:
        return None
    rewritten = editor.finish()
    onnx.checker.check_model(rewritten)
    return rewritten
