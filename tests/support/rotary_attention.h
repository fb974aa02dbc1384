// A step of a decoder as a graph: queries and new keys are rotated, keys and values are appended to
// a cache, and the queries attend to all of it.
#pragma once

#include <fmt/format.h>

#include <string>

namespace redfuser::test_support {

struct RotaryAttention {
  int heads = 8, key_heads = 2, size = 64;  // of a head
  std::string tokens = "s", type = "float16";
  std::string more = {};  // nodes behind those of the attention
  std::string results = {};

  // Inputs q, k, v [batch, tokens, heads · size], the factors c and n [tokens, size], and the
  // states past_0 and past_1; outputs y, present_0, present_1 and `results`.
  std::string graph() const {
    const int half = size / 2, group = heads / key_heads;
    return fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({type}[b,{s},{qw}] q, {type}[b,{s},{kw}] k, "
        "{type}[b,{s},{kw}] v, {type}[{s},{d}] c, {type}[{s},{d}] n, {type}[b,{kh},p,{d}] past_0, "
        "{type}[b,{kh},p,{d}] past_1) => ({type}[b,{s},{qw}] y, {type}[b,{kh},t,{d}] present_0, "
        "{type}[b,{kh},t,{d}] present_1{results}) {{ "
        "qs = Constant<value = int64[4] {{0, 0, {h}, {d}}}>() "
        "ks = Constant<value = int64[4] {{0, 0, {kh}, {d}}}>() "
        "rs = Constant<value = int64[4] {{0, {h}, -1, {d}}}>() "
        "ys = Constant<value = int64[3] {{0, 0, {qw}}}>() "
        "gs = Constant<value = int64[5] {{1, 1, {g}, 1, 1}}>() "
        "zero = Constant<value = int64[1] {{0}}>() two = Constant<value = int64[1] {{2}}>() "
        "half = Constant<value = int64[1] {{{half}}}>() end = Constant<value = int64[1] {{{d}}}>() "
        "last = Constant<value = int64[1] {{3}}>() number = Constant<value = float {{0.125}}>() "
        "scale = CastLike(number, q) "
        "q0 = Reshape(q, qs) q1 = Transpose<perm = [0, 2, 1, 3]>(q0) "
        "k0 = Reshape(k, ks) k1 = Transpose<perm = [0, 2, 1, 3]>(k0) "
        "v0 = Reshape(v, ks) v1 = Transpose<perm = [0, 2, 1, 3]>(v0) "
        "qa = Slice(q1, zero, half, last) qb = Slice(q1, half, end, last) qc = Neg(qb) "
        "qd = Concat<axis = 3>(qc, qa) qe = Mul(q1, c) qf = Mul(qd, n) qr = Add(qe, qf) "
        "ka = Slice(k1, zero, half, last) kb = Slice(k1, half, end, last) kc = Neg(kb) "
        "kd = Concat<axis = 3>(kc, ka) ke = Mul(k1, c) kf = Mul(kd, n) kr = Add(ke, kf) "
        "present_0 = Concat<axis = 2>(past_0, kr) present_1 = Concat<axis = 2>(past_1, v1) "
        "ku = Unsqueeze(present_0, two) kx = Expand(ku, gs) kk = Reshape(kx, rs) "
        "vu = Unsqueeze(present_1, two) vx = Expand(vu, gs) vv = Reshape(vx, rs) "
        "kt = Transpose<perm = [0, 1, 3, 2]>(kk) s = MatMul(qr, kt) sc = Mul(s, scale) "
        "w = Softmax<axis = -1>(sc) o = MatMul(w, vv) ot = Transpose<perm = [0, 2, 1, 3]>(o) "
        "y = Reshape(ot, ys) {more}}}",
        fmt::arg("type", type), fmt::arg("s", tokens), fmt::arg("qw", heads * size),
        fmt::arg("kw", key_heads * size), fmt::arg("d", size), fmt::arg("h", heads),
        fmt::arg("kh", key_heads), fmt::arg("g", group), fmt::arg("half", half),
        fmt::arg("more", more), fmt::arg("results", results));
  }
};

}  // namespace redfuser::test_support
