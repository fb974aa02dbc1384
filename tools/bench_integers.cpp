// Products of 8-bit integers: rows of uint8 with a zero point times weights of int8, and a scale
// for each column of the result.
#include <array>
#include <random>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Shape {
  int64_t m, k, n;
  bool transposed = false;  // the weights are [n, k]
};

constexpr int kZero = 131;

Tensor byte_tensor(DType dtype, Dims dims, unsigned seed) {
  Tensor tensor(dtype, std::move(dims));
  std::mt19937 random(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.as<uint8_t>()[i] = static_cast<uint8_t>(random());
  }
  return tensor;
}

Workload integer_product(const std::string& name, const Shape& s) {
  Workload workload;
  workload.suite = "quant";
  workload.name = name;
  const Dims dims = s.transposed ? Dims{s.n, s.k} : Dims{s.k, s.n};
  workload.model = model_text(
      fmt::format("g (uint8[{}, {}] x, int8[{}, {}] w, uint8 z, float[{}] t) => (float[{}, {}] y) "
                  "{{ {} p = MatMulInteger(x, v, z) f = Cast<to = 1>(p) y = Mul(f, t) }}",
                  s.m, s.k, dims[0], dims[1], s.n, s.m, s.n,
                  s.transposed ? "v = Transpose<perm = [1, 0]>(w)" : "v = Identity(w)"));
  const Tensor x = byte_tensor(DType::UInt8, {s.m, s.k}, 1), w = byte_tensor(DType::Int8, dims, 2);
  const Tensor t = normal_tensor("t", DType::Float32, {s.n});
  Tensor z(DType::UInt8, {});
  z.as<uint8_t>()[0] = kZero;
  workload.inputs = {{"x", x}, {"w", w}, {"z", z}, {"t", t}};
  workload.rows = s.m;
  workload.width = s.n;
  workload.sampled_rows = 2;
  workload.reference = [=](int64_t row) {
    std::vector<double> result;
    for (int64_t j = 0; j < s.n; ++j) {
      int64_t sum = 0;
      for (int64_t i = 0; i < s.k; ++i) {
        const int64_t at = s.transposed ? j * s.k + i : i * s.n + j;
        sum += (x.as<uint8_t>()[row * s.k + i] - kZero) * int64_t{w.as<int8_t>()[at]};
      }
      result.push_back(static_cast<double>(sum) * element(t, j));
    }
    return result;
  };
  return workload;
}

}  // namespace

std::vector<WorkloadMaker> integer_product_workloads(bool quick) {
  constexpr std::array<std::pair<int64_t, int64_t>, 4> kSizes = {
      {{768, 768}, {768, 3072}, {4096, 4096}, {4096, 11008}}};
  std::vector<Shape> shapes;
  for (const int64_t m : {1, 16, 128, 4096}) {
    for (const auto& [k, n] : kSizes) shapes.push_back({m, k, n});
    if (quick) break;
    shapes.push_back({m, 4096, 4096, true});
  }
  // Rows of weights that start anywhere.
  if (!quick) shapes.push_back({128, 1000, 1001});
  std::vector<WorkloadMaker> workloads;
  for (const Shape& shape : shapes) {
    const std::string name = fmt::format("int8_{}x{}x{}{}", shape.m, shape.k, shape.n,
                                         shape.transposed ? "_transposed" : "");
    workloads.push_back({name, [=] { return integer_product(name, shape); }});
  }
  return workloads;
}

}  // namespace redfuser::tools
