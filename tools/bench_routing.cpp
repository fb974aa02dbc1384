// Routing to experts, and other reductions over the columns of a product.
#include <algorithm>
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Row = std::vector<double>;

enum class Finish { Softmax, Sigmoid, Renormalised, Probabilities, LogSumExp, Best };

struct Routing {
  int64_t tokens, hidden, experts, k;
  Finish finish = Finish::Softmax;
  DType dtype = DType::Float16;
  bool transposed = false;  // the weights are [experts, hidden]
};

std::string nodes_of(const Routing& r) {
  const std::string top = "y, i = TopK(p, k) ";
  switch (r.finish) {
    case Finish::Softmax:
      return "p = Softmax<axis = -1>(f) " + top;
    case Finish::Sigmoid:
      return "p = Sigmoid(f) " + top;
    case Finish::Renormalised:
      return "p = Softmax<axis = -1>(f) t, i = TopK(p, k) last = Constant<value = int64[1] {-1}>() "
             "z = ReduceSum(t, last) y = Div(t, z)";
    case Finish::Probabilities:
      return "y = Softmax<axis = -1>(f)";
    case Finish::LogSumExp:
      return "last = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp(f, last)";
    case Finish::Best:
      return "b = ArgMax<axis = -1>(f) y = Cast<to = 1>(b)";
  }
  return "";
}

int64_t width_of(const Routing& r) {
  const bool one = r.finish == Finish::LogSumExp || r.finish == Finish::Best;
  return one ? 1 : r.finish == Finish::Probabilities ? r.experts : r.k;
}

Row finished(Row logits, const Routing& r) {
  const auto most = std::max_element(logits.begin(), logits.end());
  if (r.finish == Finish::Best) return {static_cast<double>(most - logits.begin())};
  const double largest = *most;
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  if (r.finish == Finish::LogSumExp) return {largest + std::log(sum)};
  for (double& x : logits) {
    x = r.finish == Finish::Sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - largest) / sum;
  }
  if (r.finish == Finish::Probabilities) return logits;
  std::partial_sort(logits.begin(), logits.begin() + r.k, logits.end(), std::greater<>());
  logits.resize(static_cast<size_t>(r.k));
  if (r.finish != Finish::Renormalised) return logits;
  double total = 0;
  for (const double x : logits) total += x;
  for (double& x : logits) x /= total;
  return logits;
}

Workload routing(const std::string& name, const Routing& r) {
  const std::string type = type_name(r.dtype);
  const Dims dims = r.transposed ? Dims{r.experts, r.hidden} : Dims{r.hidden, r.experts};
  Workload workload;
  workload.suite = "moe";
  workload.name = name;
  workload.model = model_text(fmt::format(
      "g ({0}[{1}, {2}] x, {0}[{3}, {4}] w) => (float[{1}, {5}] y) {{ "
      "k = Constant<value = int64[1] {{{6}}}>() {7} s = MatMul(x, {8}) f = Cast<to = 1>(s) {9} }}",
      type, r.tokens, r.hidden, dims[0], dims[1], width_of(r), r.k,
      r.transposed ? "t0 = Transpose<perm = [1, 0]>(w)" : "", r.transposed ? "t0" : "w",
      nodes_of(r)));
  const Tensor x = normal_tensor("x", r.dtype, {r.tokens, r.hidden});
  const Tensor w = normal_tensor("w", r.dtype, dims);
  workload.inputs = {{"x", x}, {"w", w}};
  workload.rows = r.tokens;
  workload.width = width_of(r);
  workload.sampled_rows = 8;
  workload.reference = [=](int64_t row) {
    Row logits(static_cast<size_t>(r.experts));
    for (int64_t j = 0; j < r.hidden; ++j) {
      const double a = element(x, row * r.hidden + j);
      for (int64_t e = 0; e < r.experts; ++e) {
        const int64_t at = r.transposed ? e * r.hidden + j : j * r.experts + e;
        logits[static_cast<size_t>(e)] += a * element(w, at);
      }
    }
    return finished(std::move(logits), r);
  };
  return workload;
}

struct Named {
  const char* name;
  Routing routing;
};

constexpr DType kBFloat = DType::BFloat16;

const Named kRoutings[] = {
    {"moe_switch_t4096", {4096, 768, 128, 1}},
    {"moe_dsv2lite_t4096", {4096, 2048, 64, 6}},
    {"moe_qwen3_t4096", {4096, 2048, 128, 8}},
    {"moe_dsr1_t4096", {4096, 7168, 256, 8}},
    {"moe_qwen3_t32", {32, 2048, 128, 8}},
    {"moe_sigmoid_t4096", {4096, 7168, 256, 8, Finish::Sigmoid}},
    {"moe_renormalised_t4096", {4096, 2048, 128, 8, Finish::Renormalised}},
    {"moe_mixtral_t4096", {4096, 4096, 8, 2, Finish::Softmax, kBFloat, true}},
    {"moe_mixtral_t1", {1, 4096, 8, 2, Finish::Softmax, kBFloat, true}},
    {"moe_dsv2_t512", {512, 5120, 160, 6, Finish::Softmax, kBFloat, true}},
    {"moe_qwen3_t1", {1, 2048, 128, 8}},
    {"moe_qwen3_t300", {300, 2048, 128, 8, Finish::Softmax, kBFloat, true}},
    {"moe_qwen3_t65536", {65536, 2048, 128, 8}},
    {"moe_odd_t1000", {1000, 1000, 72, 4}},
    {"moe_short_t20000", {20000, 64, 32, 2}},
    {"columns_softmax_4096x1024x200", {4096, 1024, 200, 1, Finish::Probabilities}},
    {"columns_softmax_32768x64x256", {32768, 64, 256, 1, Finish::Probabilities, kBFloat}},
    {"columns_lse_8192x512x96", {8192, 512, 96, 1, Finish::LogSumExp}},
    {"columns_argmax_16384x256x240", {16384, 256, 240, 1, Finish::Best, DType::Float16, true}},
    {"columns_softmax_256x16384x40", {256, 16384, 40, 1, Finish::Probabilities}},
};

}  // namespace

std::vector<WorkloadMaker> routing_workloads() {
  std::vector<WorkloadMaker> workloads;
  for (const Named& each : kRoutings) {
    workloads.push_back({each.name, [&each] { return routing(each.name, each.routing); }});
  }
  return workloads;
}

}  // namespace redfuser::tools
