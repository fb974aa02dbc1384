// Graphs drawn at random: cascades over any layout, attention of any operands and masks, products
// beside reductions.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

class Draw {
 public:
  Draw(uint64_t seed, bool small)
      : max_elements(small ? 0x1p21 : 0x1p24),
        max_work(small ? 0x1p30 : 0x1p34),
        generator_(seed) {}

  // Of a graph: elements of its inputs, and operations of its products.
  const double max_elements, max_work;

  // Uniform in its logarithm; `low` to `high`.
  int64_t size(int64_t low, int64_t high) {
    const double exponent =
        std::uniform_real_distribution<>(std::log2(static_cast<double>(low)),
                                         std::log2(static_cast<double>(high) + 0.99))(generator_);
    const auto drawn = std::clamp(static_cast<int64_t>(std::exp2(exponent)), low, high);
    // Half of them are multiples of 8, as most models have them.
    return chance(0.5) && drawn >= 16 ? drawn / 8 * 8 : drawn;
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(generator_); }
  size_t index(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(generator_);
  }
  template <typename T, size_t N>
  const T& of(const std::array<T, N>& list) {
    return list[index(N)];
  }

 private:
  std::mt19937_64 generator_;
};

struct Input {
  std::string name;
  DType dtype;
  Dims dims;
};

struct Drawn {
  std::string name, body;
  std::vector<Input> inputs;
};

std::string type_of(const Input& input) {
  return fmt::format("{}[{}]", type_name(input.dtype), fmt::join(input.dims, ", "));
}

std::string axes_text(const std::vector<size_t>& axes) {
  return fmt::format("axes = Constant<value = int64[{}] {{{}}}>() ", axes.size(),
                     fmt::join(axes, ", "));
}

// Statements over `x`, `w` of the reduced axes and `eps`, which define `y`.
struct RowKind {
  const char *name, *body;
};
constexpr std::array kRowKinds = {
    RowKind{"softmax",
            "m = ReduceMax(x, axes) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axes) y = Div(e, s)"},
    RowKind{"logsumexp",
            "m = ReduceMax(x, axes) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axes) l = Log(s) y = "
            "Add(l, m)"},
    RowKind{"norm",
            "m = ReduceMean(x, axes) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, axes) r = "
            "Sqrt(v) one = CastLike(eps, x) p = Add(r, one) n = Div(d, p) y = Mul(n, w)"},
    RowKind{
        "rms",
        "q = Mul(x, x) v = ReduceMean(q, axes) r = Sqrt(v) one = CastLike(eps, x) p = Add(r, one) "
        "n = Div(x, p) y = Mul(n, w)"},
    RowKind{"variance",
            "m = ReduceMean(x, axes) d = Sub(x, m) q = Mul(d, d) y = ReduceMean(q, axes)"},
    RowKind{"sum", "y = ReduceSum(x, axes)"},
    RowKind{"max", "y = ReduceMax(x, axes)"},
    RowKind{"absmax", "a = Abs(x) m = ReduceMax(a, axes) y = Div(x, m)"},
    RowKind{"spread",
            "m = ReduceMax(x, axes) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axes) p = Div(e, s) "
            "px = Mul(p, x) a = ReduceSum(px, axes) g = Sub(x, a) g2 = Mul(g, g) pg = Mul(p, g2) y "
            "= ReduceSum(pg, axes)"},
    RowKind{"two_norms",
            "m = ReduceMean(x, axes) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, axes) r = "
            "Sqrt(v) one = CastLike(eps, x) p = Add(r, one) n = Div(d, p) e = Exp(n) s = "
            "ReduceSum(e, axes) y = Div(e, s)"},
};

Drawn row_graph(Draw& draw) {
  const size_t rank = 2 + draw.index(3);
  const size_t reduced = 1 + (rank > 2 ? draw.index(2) : 0);
  std::vector<size_t> axes;
  while (axes.size() < reduced) {
    const size_t axis = draw.chance(0.4) ? rank - 1 - axes.size() : draw.index(rank);
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  int64_t length = draw.size(1, 1 << 20);
  int64_t rows = draw.size(
      1, std::max<int64_t>(
             1, std::min<int64_t>(100000, static_cast<int64_t>(draw.max_elements) / length)));
  Dims dims(rank, 1), weights(rank, 1);
  auto divide = [&](int64_t& total, size_t parts) {
    const int64_t part = parts == 1 ? total : draw.size(1, std::max<int64_t>(total, 1));
    total = std::max<int64_t>(total / part, 1);
    return part;
  };
  size_t left = reduced, others = rank - reduced;
  for (size_t i = 0; i < rank; ++i) {
    const bool in = std::find(axes.begin(), axes.end(), i) != axes.end();
    dims[i] = in ? divide(length, left--) : divide(rows, others--);
    if (in) weights[i] = dims[i];
  }
  constexpr std::array kTypes = {DType::Float16, DType::BFloat16, DType::Float32};
  const DType dtype = draw.of(kTypes);
  const RowKind& kind = draw.of(kRowKinds);
  Drawn result;
  result.inputs = {{"x0", dtype, dims}, {"w", dtype, weights}};
  std::string head = axes_text(axes) + "eps = Constant<value_float = 0.1>() ";
  std::string change;
  if (draw.chance(0.25)) {
    result.inputs.push_back({"z", dtype, dims});
    head += "x = Add(x0, z) ";
    change = "_sum";
  } else if (draw.chance(0.2)) {
    Dims bias = dims;
    for (int64_t& dim : bias) dim = draw.chance(0.5) ? 1 : dim;
    result.inputs.push_back({"z", dtype, bias});
    head += "x = Add(x0, z) ";
    change = "_bias";
  } else {
    head += "x = Identity(x0) ";
  }
  result.body = head + kind.body;
  result.name = fmt::format("{}{}_{}_axes{}_{}", kind.name, change, fmt::join(dims, "x"),
                            fmt::join(axes, ""), type_name(dtype));
  return result;
}

// How scores of [queries, keys] are changed: statements from `s0` to `s`.
struct MaskKind {
  const char *name, *body;
};
constexpr std::array kMasks = {
    MaskKind{"", "s = Identity(s0)"},
    MaskKind{"_causal", "v = GreaterOrEqual(i, j) s = Where(v, s0, low)"},
    MaskKind{"_window", "g = Sub(i, j) a = Abs(g) v = LessOrEqual(a, near) s = Where(v, s0, low)"},
    MaskKind{
        "_causal_window",
        "g = Sub(i, j) v0 = LessOrEqual(g, near) v1 = GreaterOrEqual(i, j) v = And(v0, v1) s = "
        "Where(v, s0, low)"},
    MaskKind{"_alibi", "g = Sub(j, i) gf = CastLike(g, s0) h = Mul(gf, slope) s = Add(s0, h)"},
    MaskKind{"_cap", "h = Tanh(s0) s = Add(h, h)"},
    MaskKind{"_bias", "s = Add(s0, bias)"},
};

Drawn attention_graph(Draw& draw) {
  constexpr std::array<int64_t, 7> kSizes = {16, 32, 40, 64, 80, 128, 192};
  constexpr std::array kTypes = {DType::Float16, DType::BFloat16, DType::Float32};
  Drawn result;
  int64_t batch, heads, queries, keys, size;
  do {
    batch = draw.size(1, 64), heads = draw.size(1, 32);
    queries = draw.chance(0.3) ? draw.size(1, 8) : draw.size(8, 4096);
    keys = draw.chance(0.5) ? std::max<int64_t>(queries, 16) : draw.size(16, 16384);
    size = draw.of(kSizes);
  } while (static_cast<double>(batch * heads) * static_cast<double>(queries + 2 * keys) *
                   static_cast<double>(size) >
               draw.max_elements ||
           4.0 * static_cast<double>(batch * heads) * static_cast<double>(queries * keys * size) >
               draw.max_work);
  const int64_t values = draw.chance(0.2) ? draw.of(kSizes) : size;
  const DType dtype = draw.of(kTypes);
  const DType value_type = draw.chance(0.15) ? draw.of(kTypes) : dtype;
  const MaskKind& mask = draw.of(kMasks);
  const bool two = draw.chance(0.15);
  result.inputs = {{"q", dtype, {batch, heads, queries, size}},
                   {"k", dtype, {batch, heads, keys, size}},
                   {"vv", value_type, {batch, heads, keys, values}}};
  std::string body = "kt = Transpose<perm = [0, 1, 3, 2]>(k) a0 = MatMul(q, kt) ";
  if (two) {
    result.inputs.push_back({"u", dtype, {batch, heads, queries, size}});
    result.inputs.push_back({"r", dtype, {batch, heads, keys, size}});
    body += "rt = Transpose<perm = [0, 1, 3, 2]>(r) b0 = MatMul(u, rt) ab = Add(a0, b0) ";
  } else {
    body += "ab = Identity(a0) ";
  }
  if (std::string(mask.name) == "_bias")
    result.inputs.push_back({"bias", dtype, {heads, queries, keys}});
  body += fmt::format(
      "f = Constant<value_float = {}>() fc = CastLike(f, ab) s0 = Mul(ab, fc) "
      "zero = Constant<value_int = 0>() one = Constant<value_int = 1>() nq = Constant<value_int = "
      "{}>() nk = Constant<value_int = {}>() ri = Range(zero, nq, one) rj = Range(zero, nk, one) "
      "ax = Constant<value = int64[1] {{1}}>() i0 = Unsqueeze(ri, ax) off = Constant<value_int = "
      "{}>() i = Add(i0, off) j = Identity(rj) near = Constant<value_int = {}>() lf = "
      "Constant<value_float = -10000.0>() low = CastLike(lf, s0) sf = Constant<value_float = "
      "0.01>() slope = CastLike(sf, s0) {} p = Softmax<axis = -1>(s) pc = CastLike(p, vv) y = "
      "MatMul(pc, vv)",
      1 / std::sqrt(static_cast<double>(size)), queries, keys, std::max<int64_t>(keys - queries, 0),
      draw.size(4, 1024), mask.body);
  result.body = body;
  result.name =
      fmt::format("attention{}{}_b{}_h{}_q{}_k{}_d{}_{}_{}_{}", mask.name, two ? "_two" : "", batch,
                  heads, queries, keys, size, values, type_name(dtype), type_name(value_type));
  return result;
}

struct ProductKind {
  const char *name, *body;
};
constexpr std::array kProducts = {
    ProductKind{"product_softmax", "s = MatMul(x, b) y = Softmax<axis = -1>(s)"},
    ProductKind{"softmax_product", "p = Softmax<axis = -1>(x) y = MatMul(p, b)"},
    ProductKind{"rms_product",
                "q = Mul(x, x) ax = Constant<value = int64[1] {-1}>() v = ReduceMean(q, ax) r = "
                "Sqrt(v) n = Div(x, r) y = MatMul(n, b)"},
    ProductKind{"product_sum",
                "s = MatMul(x, b) ax = Constant<value = int64[1] {-1}>() y = ReduceSum(s, ax)"},
};

Drawn product_graph(Draw& draw) {
  constexpr std::array kTypes = {DType::Float16, DType::BFloat16, DType::Float32};
  int64_t m, k, n;
  do {
    m = draw.size(1, 16384), k = draw.size(8, 8192), n = draw.size(1, 4096);
  } while (static_cast<double>(m * k + k * n + m * n) > draw.max_elements ||
           2.0 * static_cast<double>(m * k) * static_cast<double>(n) > draw.max_work);
  const DType dtype = draw.of(kTypes);
  const ProductKind& kind = draw.of(kProducts);
  Drawn result;
  result.inputs = {{"x", dtype, {m, k}}, {"b", dtype, {k, n}}};
  result.body = kind.body;
  result.name = fmt::format("{}_{}x{}x{}_{}", kind.name, m, k, n, type_name(dtype));
  return result;
}

Drawn graph(Draw& draw) {
  if (draw.chance(0.5)) return row_graph(draw);
  return draw.chance(0.7) ? attention_graph(draw) : product_graph(draw);
}

// Compared with the same graph, unfused, on the CPU.
Workload workload(const Drawn& drawn) {
  Workload w;
  w.suite = "gate";
  w.name = drawn.name;
  std::vector<std::string> types;
  for (const Input& input : drawn.inputs) {
    types.push_back(fmt::format("{} {}", type_of(input), input.name));
    w.inputs[input.name] = normal_tensor(input.name, input.dtype, input.dims);
  }
  w.model = model_text(fmt::format("g ({}) => (y) {{ {} }}", fmt::join(types, ", "), drawn.body));
  CompileOptions unfused;
  unfused.fuse = false;
  Session session(compile(Model::parse(w.model), unfused), {});
  w.expected = session.run(w.inputs);
  return w;
}

}  // namespace

std::vector<WorkloadMaker> gate_workloads(size_t count, uint64_t seed, bool small) {
  std::vector<WorkloadMaker> makers;
  for (size_t i = 0; i < count; ++i) {
    Draw draw(seed * 1000003 + i, small);
    const Drawn drawn = graph(draw);
    makers.push_back({fmt::format("{}_{}", i, drawn.name), [drawn] { return workload(drawn); }});
  }
  return makers;
}

}  // namespace redfuser::tools
