// Graphs of two chained products, drawn from a seed.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>

#include "redfuser/redfuser.h"
#include "support/drawn_tensor.h"

namespace redfuser::testing {

// One product or a gate of two with a map, then a product with or without a bias and a residual.
struct DrawnChain {
  const char* type;
  DType dtype;
  bool gated, gelu, bias, residual, first_by_rows, second_by_rows;
  int64_t depth, inner, width;

  explicit DrawnChain(unsigned seed) {
    std::mt19937 random(seed);
    const auto flip = [&] { return random() % 2 == 0; };
    type = flip() ? "float16" : "bfloat16";
    dtype = type[0] == 'f' ? DType::Float16 : DType::BFloat16;
    gated = flip(), gelu = flip(), bias = flip(), residual = flip();
    first_by_rows = flip(), second_by_rows = flip();
    constexpr int64_t kDepths[] = {8, 32, 64, 200, 416, 768},
                      kInners[] = {16, 64, 248, 520, 1024, 2056},
                      kWidths[] = {8, 64, 136, 256, 520};
    depth = kDepths[random() % std::size(kDepths)];
    inner = kInners[random() % std::size(kInners)];
    width = kWidths[random() % std::size(kWidths)];
  }

  // Of `rows`, a number or a symbol.
  std::string graph(const std::string& rows) const {
    const auto matrix = [&](int64_t m, int64_t n, bool by_rows) {
      return fmt::format("{}[{},{}]", type, by_rows ? n : m, by_rows ? m : n);
    };
    const std::string w = matrix(depth, inner, first_by_rows);
    const auto weights = [](const char* name, bool by_rows) {
      return fmt::format("{0}t = {1}({0}) ", name, by_rows ? "Transpose" : "Identity");
    };
    std::string body = weights("w", first_by_rows) + weights("u", first_by_rows) +
                       weights("d", second_by_rows) + "p = MatMul(x, wt) q = MatMul(x, ut) ";
    body += bias ? "a = Add(p, b) " : "a = Identity(p) ";
    body += gelu ? "s = Sigmoid(a) h = Mul(a, s) " : "h = Relu(a) ";
    body += gated ? "g = Mul(h, q) " : "g = Identity(h) ";
    body += "o = MatMul(g, dt) ";
    body += bias ? "e = Add(o, c) " : "e = Identity(o) ";
    body += residual ? "y = Add(e, r)" : "y = Identity(e)";
    return fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1},{2}] x, {3} w, {3} u, {4} d, "
        "{0}[{5}] b, {0}[{6}] c, {0}[{1},{6}] r) => ({0}[{1},{6}] y) {{ {7} }}",
        type, rows, depth, w, matrix(inner, width, second_by_rows), inner, width, body);
  }

  NamedTensors inputs(int64_t rows, unsigned seed) const {
    std::mt19937 random(seed);
    const auto tensor = [&](Dims dims, double scale) {
      return drawn_tensor(random, dtype, std::move(dims), scale);
    };
    const auto weights = [&](int64_t m, int64_t n, bool by_rows) {
      return tensor(by_rows ? Dims{n, m} : Dims{m, n}, 2 / std::sqrt(static_cast<double>(m)));
    };
    return {{"x", tensor({rows, depth}, 1)},
            {"w", weights(depth, inner, first_by_rows)},
            {"u", weights(depth, inner, first_by_rows)},
            {"d", weights(inner, width, second_by_rows)},
            {"b", tensor({inner}, 1)},
            {"c", tensor({width}, 1)},
            {"r", tensor({rows, width}, 1)}};
  }
};

}  // namespace redfuser::testing
