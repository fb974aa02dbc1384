"""Random rewrites of a model, several composed, that keep what it computes."""

import collections

import onnx

from rewrites_algebra import ALGEBRA
from rewrites_editor import Editor
from rewrites_spellings import SPELLINGS
from rewrites_wires import WIRES, rename

MEANINGS = [rewrite.__name__ for rewrite in ALGEBRA + SPELLINGS]
REWRITES = {rewrite.__name__: rewrite for rewrite in ALGEBRA + SPELLINGS + WIRES}
# How often a rewrite is applied where it could be.
MEANING_RATES, WIRE_RATES = (0.3, 0.6, 1.0), (0.03, 0.1, 0.3)


def apply(editor, name, rate, random):
    """What the rewrite did at how many nodes, as text; empty if nothing."""
    done = collections.Counter()
    for node in list(editor.nodes):
        if random.random() < rate and any(node is other for other in editor.nodes):
            what = REWRITES[name](editor, node, random)
            if what:
                done[name if what is True else f"{name} ({what})"] += 1
    editor.remove_dead()
    return ", ".join(f"{what} x{count}" for what, count in sorted(done.items()))


def compose(model, types, random):
    """A rewritten model, and what was done to it as text."""
    editor = Editor(model, types)
    chosen = list(random.choice(MEANINGS, size=random.integers(2, 6), replace=False))
    chosen += list(random.choice([wire.__name__ for wire in WIRES], size=random.integers(1, 4),
                                 replace=False))
    random.shuffle(chosen)
    done = []
    for name in chosen:
        rate = random.choice(MEANING_RATES if name in MEANINGS else WIRE_RATES)
        done.append(apply(editor, name, rate, random))
    if random.random() < 0.5:
        rename(editor, random)
        done.append("rename")
    rewritten = editor.finish(lambda count: int(random.integers(count)))
    onnx.checker.check_model(rewritten)
    return rewritten, "; ".join(what for what in done if what)


def single(model, types, name, rate, random):
    """The model with one rewrite, and what was done; None if it applies nowhere."""
    editor = Editor(model, types)
    done = apply(editor, name, rate, random)
    if not done:
        return None
    rewritten = editor.finish()
    onnx.checker.check_model(rewritten)
    return rewritten, done
