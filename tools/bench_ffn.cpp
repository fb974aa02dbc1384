// Chains of two products, as feed-forward layers have them: relu(x w) d, and with a gate
// silu(x w) (x u) d, in fp16.
#include <array>
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Chain {
  const char* name;
  int64_t inner, depth, width;  // w: [depth, inner], d: [inner, width]
  bool gated;
};

constexpr std::array<Chain, 18> kChains = {{{"G1", 512, 32, 256, false},
                                            {"G2", 256, 512, 64, false},
                                            {"G3", 512, 416, 256, false},
                                            {"G4", 3072, 768, 768, false},
                                            {"G5", 16384, 4096, 4096, false},
                                            {"G6", 4096, 1024, 1024, false},
                                            {"G7", 768, 768, 768, false},
                                            {"G8", 8192, 2048, 2048, false},
                                            {"G9", 2048, 512, 512, false},
                                            {"G10", 1536, 384, 384, false},
                                            {"S1", 8192, 3072, 3072, true},
                                            {"S2", 5632, 2048, 2048, true},
                                            {"S3", 11008, 4096, 4096, true},
                                            {"S4", 8192, 2048, 2048, true},
                                            {"S5", 11008, 2048, 2048, true},
                                            {"S6", 8960, 1536, 1536, true},
                                            {"S7", 9728, 2560, 2560, true},
                                            {"S8", 3072, 1024, 1024, true}}};

std::string model_of(const Chain& c, int64_t rows) {
  const auto matrix = [](int64_t m, int64_t n) { return fmt::format("float16[{}, {}]", m, n); };
  const std::string weights = matrix(c.depth, c.inner);
  const std::string inputs = fmt::format("{} x, {} w, {}{} d", matrix(rows, c.depth), weights,
                                         c.gated ? weights + " u, " : "", matrix(c.inner, c.width));
  const char* const nodes = c.gated ? "p = MatMul(x, w) q = MatMul(x, u) g = Sigmoid(p) "
                                      "s = Mul(p, g) h = Mul(s, q) y = MatMul(h, d)"
                                    : "p = MatMul(x, w) h = Relu(p) y = MatMul(h, d)";
  return model_text(fmt::format("g ({}) => ({} y) {{ {} }}", inputs, matrix(rows, c.width), nodes));
}

std::vector<double> chain_row(const Chain& c, const NamedTensors& inputs, int64_t row) {
  const auto times = [](const std::vector<double>& left, const Tensor& right, int64_t columns) {
    std::vector<double> sums(static_cast<size_t>(columns), 0.0);
    for (size_t i = 0; i < left.size(); ++i) {
      const int64_t from = static_cast<int64_t>(i) * columns;
      for (int64_t j = 0; j < columns; ++j) {
        sums[static_cast<size_t>(j)] += left[i] * element(right, from + j);
      }
    }
    return sums;
  };
  std::vector<double> x;
  for (int64_t i = 0; i < c.depth; ++i) x.push_back(element(inputs.at("x"), row * c.depth + i));
  std::vector<double> h = times(x, inputs.at("w"), c.inner);
  if (c.gated) {
    const std::vector<double> q = times(x, inputs.at("u"), c.inner);
    for (size_t j = 0; j < h.size(); ++j) h[j] *= q[j] / (1 + std::exp(-h[j]));
  } else {
    for (double& each : h) each = std::max(each, 0.0);
  }
  return times(h, inputs.at("d"), c.width);
}

// Weights have about unit gain, so that no sum exceeds fp16.
Workload chain(const Chain& c, int64_t rows) {
  const auto weights = [](const char* name, int64_t m, int64_t n) {
    const float gain = 1 / std::sqrt(static_cast<float>(m));
    return normal_tensor(name, DType::Float16, {m, n}, gain);
  };
  Workload workload;
  workload.suite = "ffn";
  workload.name = fmt::format("ffn_{}_m{}", c.name, rows);
  workload.model = model_of(c, rows);
  workload.inputs = {{"x", normal_tensor("x", DType::Float16, {rows, c.depth})},
                     {"w", weights("w", c.depth, c.inner)},
                     {"d", weights("d", c.inner, c.width)}};
  if (c.gated) workload.inputs.emplace("u", weights("u", c.depth, c.inner));
  workload.rows = rows;
  workload.width = c.width;
  workload.sampled_rows = 2;
  workload.reference = [c, inputs = workload.inputs](int64_t row) {
    return chain_row(c, inputs, row);
  };
  return workload;
}

}  // namespace

std::vector<WorkloadMaker> ffn_workloads(bool quick) {
  std::vector<WorkloadMaker> workloads;
  for (const int64_t rows : {1, 16, 128, 512}) {
    if (quick && rows != 128) continue;
    for (const Chain& each : kChains) {
      workloads.push_back(
          {fmt::format("ffn_{}_m{}", each.name, rows), [=] { return chain(each, rows); }});
    }
  }
  return workloads;
}

}  // namespace redfuser::tools
