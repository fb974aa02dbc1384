// Products of few rows or columns, as decoding and classifiers have them, with and without what
// follows them.
#include <array>
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Shape {
  int64_t m, k, n;
  DType dtype = DType::Float16;
  bool transposed = false;  // the weights are [n, k]
  bool gated = false;       // silu(x w) · x u
  bool residual = false;    // + r
};

Workload product(const std::string& name, const Shape& s) {
  const std::string type = type_name(s.dtype);
  const std::string weights = s.transposed ? fmt::format("{}[{}, {}]", type, s.n, s.k)
                                           : fmt::format("{}[{}, {}]", type, s.k, s.n);
  const std::string result = fmt::format("{}[{}, {}]", type, s.m, s.n);
  std::string inputs = fmt::format("{}[{}, {}] x, {} w", type, s.m, s.k, weights), nodes;
  if (s.gated) inputs += fmt::format(", {} u", weights);
  if (s.residual) inputs += fmt::format(", {} r", result);
  for (const char* each : {"w", "u"}) {
    if (*each == 'u' && !s.gated) continue;
    const std::string operand = s.transposed ? std::string(each) + "t" : each;
    if (s.transposed) nodes += fmt::format("{} = Transpose<perm = [1, 0]>({}) ", operand, each);
    nodes += fmt::format("p{} = MatMul(x, {}) ", each, operand);
  }
  nodes += s.gated      ? "g = Sigmoid(pw) h = Mul(pw, g) y = Mul(h, pu)"
           : s.residual ? "y = Add(pw, r)"
                        : "y = Identity(pw)";
  Workload workload;
  workload.suite = "products";
  workload.name = name;
  workload.model = model_text(fmt::format("g ({}) => ({} y) {{ {} }}", inputs, result, nodes));
  const Tensor x = normal_tensor("x", s.dtype, {s.m, s.k});
  const Dims dims = s.transposed ? Dims{s.n, s.k} : Dims{s.k, s.n};
  const Tensor w = normal_tensor("w", s.dtype, dims), u = normal_tensor("u", s.dtype, dims);
  const Tensor r = normal_tensor("r", s.dtype, {s.m, s.n});
  workload.inputs = {{"x", x}, {"w", w}};
  if (s.gated) workload.inputs.emplace("u", u);
  if (s.residual) workload.inputs.emplace("r", r);
  workload.rows = s.m;
  workload.width = s.n;
  workload.sampled_rows = 2;
  workload.reference = [=](int64_t row) {
    const auto sum = [&](const Tensor& b, int64_t column) {
      double total = 0;
      for (int64_t i = 0; i < s.k; ++i) {
        const int64_t at = s.transposed ? column * s.k + i : i * s.n + column;
        total += element(x, row * s.k + i) * element(b, at);
      }
      return total;
    };
    std::vector<double> result;
    for (int64_t j = 0; j < s.n; ++j) {
      const double p = sum(w, j);
      const double gate = s.gated ? sum(u, j) / (1 + std::exp(-p)) : 1;
      result.push_back(p * gate + (s.residual ? element(r, row * s.n + j) : 0));
    }
    return result;
  };
  return workload;
}

std::vector<std::pair<std::string, Shape>> shapes(bool quick) {
  std::vector<std::pair<std::string, Shape>> all;
  constexpr std::array<std::pair<int64_t, int64_t>, 4> kSizes = {
      {{2048, 2048}, {2048, 3072}, {8192, 2048}, {2048, 8192}}};
  for (const int64_t m : {1, 8, 16, 32}) {
    for (const auto& [k, n] : kSizes) {
      all.emplace_back(fmt::format("product_{}x{}x{}", m, k, n), Shape{m, k, n});
    }
    all.emplace_back(fmt::format("gated_{}x2048x8192", m),
                     Shape{m, 2048, 8192, DType::Float16, false, true});
    all.emplace_back(fmt::format("transposed_{}x2048x8192", m),
                     Shape{m, 2048, 8192, DType::BFloat16, true});
    all.emplace_back(fmt::format("residual_{}x8192x2048", m),
                     Shape{m, 8192, 2048, DType::Float16, false, false, true});
    if (quick) break;
  }
  all.emplace_back("product_1x2048x32000", Shape{1, 2048, 32000});
  all.emplace_back("transposed_1x4096x4096", Shape{1, 4096, 4096, DType::Float16, true});
  all.emplace_back("float_1x2048x8192", Shape{1, 2048, 8192, DType::Float32});
  all.emplace_back("float_8x2048x8192", Shape{8, 2048, 8192, DType::Float32});
  all.emplace_back("float_transposed_4x1024x4096", Shape{4, 1024, 4096, DType::Float32, true});
  all.emplace_back("float_311x5428x3", Shape{311, 5428, 3, DType::Float32});
  all.emplace_back("float_1x1000x1", Shape{1, 1000, 1, DType::Float32});
  all.emplace_back("product_1x1000x1", Shape{1, 1000, 1});
  all.emplace_back("product_536x414x5", Shape{536, 414, 5});
  all.emplace_back("product_3x999x1999", Shape{3, 999, 1999});
  all.emplace_back("product_65536x64x2", Shape{65536, 64, 2, DType::BFloat16});
  return all;
}

}  // namespace

std::vector<WorkloadMaker> product_workloads(bool quick) {
  std::vector<WorkloadMaker> workloads;
  for (const auto& [name, shape] : shapes(quick)) {
    workloads.push_back({name, [=] { return product(name, shape); }});
  }
  return workloads;
}

}  // namespace redfuser::tools
