"""If, Loop and Scan that only a run resolves give what ONNX Runtime gives, for each condition and count and for several
sizes: with values of the graph around, nested, and with sizes that grow.

    python control_flow_test.py REDFUSER_RUN
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

from case_runner import run_cases, run_model

HEAD = '<ir_version: 9, opset_import: ["" : 17]> g '
BRANCHES = """If (c) <then_branch = t () => (float[n, m] a) { d = MatMul(x, w) a = Relu(d) },
else_branch = e () => (float[n, m] b) { s = Softmax(x) b = Add(s, x) }>"""
STEP = "body = b (int64 i, bool go, float[n, m] s) => (bool on, float[n, m] r, float[n] p)"

MODELS = {
    "branches": "(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y) { z = " + BRANCHES +
                " y = Neg(z) }",
    "branches of other sizes": """(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[k, m] y)
{ z = If (c) <then_branch = th () => (float[k, m] a) { a = Concat<axis = 0>(x, w) },
else_branch = e () => (float[n, m] b) { b = Identity(x) }> y = Exp(z) }""",
    "a branch of constants": """(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[k] y, float[n, m] z)
{ y, z = If (c) <then_branch = th () => (float[2] a, float[n, m] a1) { a = Constant<value_floats = [1.0, 2.0]>()
a1 = Identity(x) }, else_branch = e () => (float[3] b, float[n, m] b1)
{ b = Constant<value_floats = [3.0, 4.0, 5.0]>() b1 = Neg(x) }> }""",
    "a loop": "(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y, float[k, n] z) { y, z = Loop <" +
              STEP + """ { on = Identity(go) f = MatMul(s, w) r = Tanh(f) one = Constant<value_ints = [1]>()
p = ReduceSum<keepdims = 0>(r, one) }> (t, c, x) }""",
    "a loop of an untyped body": "(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y) { y, z = Loop <" +
                                 STEP + """ { on = Identity(go) f = MatMul(s, w) r = Tanh(f)
one = Constant<value_ints = [1]>() p = ReduceSum<keepdims = 0>(r, one) }> (t, c, x) }""",
    "a loop that ends itself": "(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y, float[k, n] z) "
                               "{ y, z = Loop <" + STEP +
                               """ { half = Constant<value_float = 0.5>() r = Mul(s, half)
p = ReduceMax<axes = [1], keepdims = 0>(r) l = Constant<value_float = 0.1>()
q = ReduceMax<keepdims = 0>(p) on = Greater(q, l) }> ("", c, x) }""",
    "a loop that grows": """(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[k, m] y) { y = Loop <
body = b (int64 i, bool go, float[a, m] s) => (bool on, float[b, m] r)
{ on = Identity(go) r = Concat<axis = 0>(s, w) }> (t, "", x) }""",
    "branches in a loop": "(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y, float[k, n] z) "
                          "{ y, z = Loop <" + STEP +
                          """ { on = Identity(go) two = Constant<value_int = 2>() h = Mod(i, two)
zero = Constant<value_int = 0>() even = Equal(h, zero)
r = If (even) <then_branch = th () => (float[n, m] a) { d = MatMul(s, w) a = Tanh(d) },
else_branch = e () => (float[n, m] b) { b = Sub(x, s) }>
p = ReduceMean<axes = [1], keepdims = 0>(r) }> (t, c, x) }""",
    "a scan in a branch": """(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[n, m] y) { y = If (c) <
then_branch = th () => (float[n, m] a) { first = Constant<value_int = 0>() s0 = Gather(w, first)
s, a = Scan <num_scan_inputs = 1, body = b (float[m] u, float[m] v) => (float[m] u1, float[m] o)
{ u1 = Add(u, v) o = Mul(u1, v) }> (s0, x) },
else_branch = e () => (float[n, m] b) { b = MatMul(x, w) }> }""",
    "a loop in a scan": """(float[n, m] x, float[m, m] w, bool c, int64 t) => (float[m] y, float[n, m] z)
{ first = Constant<value_int = 0>() s0 = Gather(w, first) y, z = Scan <num_scan_inputs = 1,
body = b (float[m] u, float[m] v) => (float[m] u1, float[m] o) { half = Constant<value_float = 0.5>()
u1 = Loop <body = l (int64 i, bool go, float[m] q) => (bool on, float[m] q1)
{ on = Identity(go) q2 = Add(q, v) q1 = Mul(q2, half) }> (t, "", u) o = Sub(u1, v) }> (s0, x) }""",
}
UNTYPED = {"a loop of an untyped body"}  # the file leaves the types of its body's values open


def check(program, name, sizes, condition, count, folder):
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    if name in UNTYPED:
        body = model.graph.node[0].attribute[0].g
        for value in [*body.input[2:], *body.output[1:]]:
            value.ClearField("type")
    random = np.random.default_rng(count)
    n, m = sizes
    feed = {"x": random.standard_normal((n, m)).astype(np.float32),
            "w": (0.1 * random.standard_normal((m, m))).astype(np.float32),
            "c": np.array(condition), "t": np.array(count, np.int64)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    np.savez(folder / "outputs.npz", **dict(zip(names, session.run(names, feed))))
    code, said = run_model(program, model, feed, folder, "--compare", folder / "outputs.npz", "--rtol", "1e-4",
                           "--atol", "1e-5", "--iterations", "2")
    return None if code == 0 else f"{name} {sizes} {condition} {count}: exit {code}: {said}"


def main():
    program = sys.argv[1]
    cases = [(program, name, sizes, condition, count) for name in MODELS for sizes in ((3, 4), (70, 16))
             for condition in (False, True) for count in (0, 1, 80)]
    return run_cases(cases, check)


if __name__ == "__main__":
    sys.exit(main())
