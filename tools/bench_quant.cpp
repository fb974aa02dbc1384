// Quantisation of each row to 8-bit floats, then the product with such weights and a scale for each
// of their columns: spelled with casts, and with QuantizeLinear and DequantizeLinear.
#include <algorithm>
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Shape {
  int64_t m, n, k;
};

constexpr float kLargest = 448, kLeast = 1e-12f;

// `pairs`: QuantizeLinear and DequantizeLinear around the product.
std::string model(const Shape& s, bool pairs) {
  const std::string scale = fmt::format(
      "o = Constant<value = int64[1] {{1}}>() least = Constant<value = float {{{}}}>() "
      "most = Constant<value = float {{{}}}>() a = Abs(x) r = ReduceMax<keepdims = {}>(a, o) "
      "f = Cast<to = 1>(r) c = Max(f, least) s = Div(c, most) v = Cast<to = 1>(x) ",
      kLeast, kLargest, pairs ? 0 : 1);
  const std::string product =
      pairs ? "q = QuantizeLinear<axis = 0, output_dtype = 17>(v, s) "
              "d = DequantizeLinear<axis = 0>(q, s) e = DequantizeLinear<axis = 0>(w, t) "
              "u = Transpose<perm = [1, 0]>(e) p = MatMul(d, u) y = Cast<to = 16>(p)"
            : "d = Div(v, s) q = Cast<to = 17>(d) e = Cast<to = 1>(q) "
              "u = Transpose<perm = [1, 0]>(w) g = Cast<to = 1>(u) p = MatMul(e, g) "
              "h = Mul(p, s) i = Mul(h, t) y = Cast<to = 16>(i)";
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (bfloat16[{0}, {2}] x, float8e4m3fn[{1}, {2}] "
      "w, float[{3}{1}] t) => (bfloat16[{0}, {1}] y) {{ {4}{5} }}",
      s.m, s.n, s.k, pairs ? "" : "1, ", scale, product);
}

// The nearest value of E4M3FN, ties to even.
double rounded(float x) {
  const float size = std::min(std::fabs(x), kLargest);
  const int exponent = size < 0x1p-6f ? -6 : std::ilogb(size);
  const double quantum = std::ldexp(1, exponent - 3);
  return std::copysign(std::nearbyint(size / quantum) * quantum, x);
}

Workload quantised(const std::string& name, const Shape& s, bool pairs) {
  Workload workload;
  workload.suite = "quant";
  workload.name = name;
  workload.model = model(s, pairs);
  const Tensor x = normal_tensor("x", DType::BFloat16, {s.m, s.k});
  const Tensor w = normal_tensor("w", DType::Float8E4M3FN, {s.n, s.k});
  Tensor t = normal_tensor("t", DType::Float32, pairs ? Dims{s.n} : Dims{1, s.n});
  for (int64_t j = 0; j < s.n; ++j) t.as<float>()[j] = 0.5f + std::fabs(t.as<float>()[j]);
  workload.inputs = {{"x", x}, {"w", w}, {"t", t}};
  workload.rows = s.m;
  workload.width = s.n;
  workload.sampled_rows = 2;
  workload.reference = [=](int64_t row) {
    float most = kLeast;
    for (int64_t i = 0; i < s.k; ++i) {
      most = std::max(most, static_cast<float>(std::fabs(element(x, row * s.k + i))));
    }
    const float scale = most / kLargest;
    std::vector<double> codes, result;
    for (int64_t i = 0; i < s.k; ++i) {
      codes.push_back(rounded(static_cast<float>(element(x, row * s.k + i)) / scale));
    }
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < s.k; ++i) {
        sum += codes[static_cast<size_t>(i)] * element(w, j * s.k + i);
      }
      result.push_back(sum * scale * element(t, j));
    }
    return result;
  };
  return workload;
}

}  // namespace

std::vector<WorkloadMaker> quantised_workloads(bool quick) {
  const std::pair<const char*, Shape> shapes[] = {{"llama_m64", {64, 4096, 4096}},
                                                  {"qwen3_m4096", {4096, 4096, 2048}},
                                                  {"dsr1_m4096", {4096, 7168, 2048}},
                                                  {"llama_m4096", {4096, 4096, 4096}}};
  std::vector<WorkloadMaker> workloads;
  for (const auto& [name, shape] : shapes) {
    for (const bool pairs : {false, true}) {
      const std::string whole = fmt::format("fp8quant_{}{}", name, pairs ? "_pairs" : "");
      workloads.push_back({whole, [=, shape = shape] { return quantised(whole, shape, pairs); }});
    }
    if (quick) break;
  }
  for (WorkloadMaker& maker : integer_product_workloads(quick)) {
    workloads.push_back(std::move(maker));
  }
  return workloads;
}

}  // namespace redfuser::tools
