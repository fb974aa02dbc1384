// Norms into products.
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct NormProduct {
  const char* name;
  int64_t rows, columns, depth;
  DType dtype = DType::Float16;
};

// y = (x / rms(x) · g) w, as exporters write an RMSNorm: in fp32, rounded before the product.
Workload norm_product(const NormProduct& p) {
  const std::string type = type_name(p.dtype);
  Workload workload;
  workload.suite = "normgemm";
  workload.name = p.name;
  workload.model = model_text(fmt::format(
      "g ({0}[{1}, {2}] x, {0}[{2}] g, {0}[{2}, {3}] w) => ({0}[{1}, {3}] y) {{ "
      "last = Constant<value = int64[1] {{-1}}>() e = Constant<value = float {{1e-6}}>() "
      "f = Cast<to = 1>(x) q = Mul(f, f) v = ReduceMean(q, last) a = Add(v, e) s = Sqrt(a) "
      "n = Div(f, s) h = Cast<to = {4}>(n) m = Mul(h, g) y = MatMul(m, w) }}",
      type, p.rows, p.depth, p.columns, type_number(p.dtype)));
  const Tensor x = normal_tensor("x", p.dtype, {p.rows, p.depth});
  const Tensor g = normal_tensor("g", p.dtype, {p.depth});
  const Tensor w = normal_tensor("w", p.dtype, {p.depth, p.columns});
  workload.inputs = {{"x", x}, {"g", g}, {"w", w}};
  workload.rows = p.rows;
  workload.width = p.columns;
  workload.sampled_rows = 2;
  workload.reference = [=](int64_t row) {
    double squares = 0;
    for (int64_t i = 0; i < p.depth; ++i) {
      const double value = element(x, row * p.depth + i);
      squares += value * value;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(p.depth) + 1e-6);
    std::vector<double> result(static_cast<size_t>(p.columns));
    for (int64_t i = 0; i < p.depth; ++i) {
      const double value = element(x, row * p.depth + i) * scale * element(g, i);
      for (int64_t j = 0; j < p.columns; ++j) {
        result[static_cast<size_t>(j)] += value * element(w, i * p.columns + j);
      }
    }
    return result;
  };
  return workload;
}

constexpr NormProduct kNormProducts[] = {
    {"rmsnorm_gemm_llama7b_qkv_m4096", 4096, 12288, 4096},
    {"rmsnorm_gemm_llama7b_qkv_m16", 16, 12288, 4096},
    {"rmsnorm_gemm_qwen06b_m1", 1, 4096, 1024},
    {"rmsnorm_gemm_llama1b_m128", 128, 3072, 2048, DType::BFloat16},
};

}  // namespace

std::vector<WorkloadMaker> norm_product_workloads() {
  std::vector<WorkloadMaker> workloads;
  for (const NormProduct& each : kNormProducts) {
    workloads.push_back({each.name, [&each] { return norm_product(each); }});
  }
  return workloads;
}

}  // namespace redfuser::tools
