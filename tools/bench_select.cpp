// Ranks, positions of extremes and running sums: top-k from one row to many, sort, routing.
#include <algorithm>
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Row = std::vector<double>;

struct Shape {
  int64_t outer, length, inner;  // of the lines along the middle dimension
  DType dtype = DType::Float32;
};

// The line that number `line` is, counted along `inner` first.
Row read_line(const Tensor& x, const Shape& shape, int64_t line) {
  const int64_t base = line / shape.inner * shape.length * shape.inner + line % shape.inner;
  Row row;
  for (int64_t j = 0; j < shape.length; ++j) row.push_back(element(x, base + j * shape.inner));
  return row;
}

Row softmax(Row row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - most);
  for (double& x : row) x /= sum;
  return row;
}

Row first(Row row, int64_t k) {
  std::partial_sort(row.begin(), row.begin() + k, row.end(), std::greater<>());
  row.resize(static_cast<size_t>(k));
  return row;
}

Workload base_workload(const std::string& name, const std::string& graph) {
  Workload workload;
  workload.suite = "select";
  workload.name = name;
  workload.model = model_text(graph);
  return workload;
}

// y and i are the first k of each line of x, or of its softmax.
Workload top_k(const std::string& name, const Shape& shape, int64_t k, bool weights) {
  const std::string type = type_name(shape.dtype);
  const std::string lines = shape.inner == 1 ? "" : fmt::format(", {}", shape.inner);
  Workload workload = base_workload(
      name, fmt::format("g ({0}[{1}, {2}{3}] x) => ({0}[{1}, {4}{3}] y, int64[{1}, {4}{3}] i) {{ "
                        "k = Constant<value = int64[1] {{{4}}}>() {5}"
                        "y, i = TopK<axis = 1>({6}, k) }}",
                        type, shape.outer, shape.length, lines, k,
                        weights ? "p = Softmax<axis = 1>(x) " : "", weights ? "p" : "x"));
  Dims dims = {shape.outer, shape.length};
  if (shape.inner > 1) dims.push_back(shape.inner);
  const Tensor x = normal_tensor("x", shape.dtype, dims);
  workload.inputs = {{"x", x}};
  // Where lines lie beside each other, a row of y has one rank of all of them.
  if (shape.inner > 1) {
    workload.rows = shape.outer;
    workload.width = k * shape.inner;
    workload.sampled_rows = 4;
  } else {
    workload.rows = shape.outer;
    workload.width = k;
  }
  workload.reference = [=](int64_t row) {
    Row result(static_cast<size_t>(k * shape.inner));
    for (int64_t c = 0; c < shape.inner; ++c) {
      Row line = read_line(x, shape, row * shape.inner + c);
      line = first(weights ? softmax(std::move(line)) : std::move(line), k);
      for (int64_t r = 0; r < k; ++r) {
        result[static_cast<size_t>(r * shape.inner + c)] = line[static_cast<size_t>(r)];
      }
    }
    return result;
  };
  return workload;
}

// The weights of the k best of n experts for each of m tokens of h features.
Workload router(const std::string& name, int64_t m, int64_t h, int64_t n, int64_t k) {
  Workload workload = base_workload(
      name, fmt::format("g (float16[{0}, {1}] x, float16[{1}, {2}] w) => (float[{0}, {3}] y, "
                        "int64[{0}, {3}] i) {{ k = Constant<value = int64[1] {{{3}}}>() "
                        "s = MatMul(x, w) f = Cast<to = 1>(s) p = Softmax<axis = -1>(f) "
                        "y, i = TopK(p, k) }}",
                        m, h, n, k));
  const Tensor x = normal_tensor("x", DType::Float16, {m, h});
  const Tensor w = normal_tensor("w", DType::Float16, {h, n});
  workload.inputs = {{"x", x}, {"w", w}};
  // Logits of unit variance times this: softmax of such spread picks clear winners.
  workload.rows = m;
  workload.width = k;
  workload.sampled_rows = 8;
  workload.reference = [=](int64_t row) {
    Row logits(static_cast<size_t>(n));
    for (int64_t j = 0; j < h; ++j) {
      const double a = element(x, row * h + j);
      for (int64_t e = 0; e < n; ++e) logits[static_cast<size_t>(e)] += a * element(w, j * n + e);
    }
    return first(softmax(logits), k);
  };
  return workload;
}

// y is one number for each line of x.
Workload positions(const std::string& name, const Shape& shape) {
  const std::string lines = shape.inner == 1 ? "" : fmt::format(", {}", shape.inner);
  const std::string type = type_name(shape.dtype);
  Workload workload = base_workload(
      name, fmt::format("g ({0}[{1}, {2}{3}] x) => (float[{1}{3}] y) {{ "
                        "i = ArgMax<axis = 1, keepdims = 0>(x) y = Cast<to = 1>(i) }}",
                        type, shape.outer, shape.length, lines));
  Dims dims = {shape.outer, shape.length};
  if (shape.inner > 1) dims.push_back(shape.inner);
  const Tensor x = normal_tensor("x", shape.dtype, dims);
  workload.inputs = {{"x", x}};
  workload.rows = shape.outer;
  workload.width = shape.inner;
  workload.sampled_rows = 8;
  workload.reference = [=](int64_t row) {
    Row result;
    for (int64_t c = 0; c < shape.inner; ++c) {
      const Row line = read_line(x, shape, row * shape.inner + c);
      const auto best = std::max_element(line.begin(), line.end());
      result.push_back(static_cast<double>(best - line.begin()));
    }
    return result;
  };
  return workload;
}

Workload running_sums(const std::string& name, const Shape& shape) {
  const std::string lines = shape.inner == 1 ? "" : fmt::format(", {}", shape.inner);
  const std::string dims =
      fmt::format("{}[{}, {}{}]", type_name(shape.dtype), shape.outer, shape.length, lines);
  Workload workload =
      base_workload(name, fmt::format("g ({0} x) => ({0} y) {{ "
                                      "a = Constant<value = int64 {{1}}>() y = CumSum(x, a) }}",
                                      dims));
  Dims sizes = {shape.outer, shape.length};
  if (shape.inner > 1) sizes.push_back(shape.inner);
  const Tensor x = normal_tensor("x", shape.dtype, sizes);
  workload.inputs = {{"x", x}};
  workload.rows = shape.outer;
  workload.width = shape.length * shape.inner;
  workload.sampled_rows = 8;
  workload.reference = [=](int64_t row) {
    Row result(static_cast<size_t>(shape.length * shape.inner));
    for (int64_t c = 0; c < shape.inner; ++c) {
      double sum = 0;
      const Row line = read_line(x, shape, row * shape.inner + c);
      for (int64_t j = 0; j < shape.length; ++j) {
        result[static_cast<size_t>(j * shape.inner + c)] = sum += line[static_cast<size_t>(j)];
      }
    }
    return result;
  };
  return workload;
}

struct Ranks {
  const char* name;
  Shape shape;
  int64_t k;
  bool weights = false;
};

const Ranks kRanks[] = {
    {"topk_512x32000_k50", {512, 32000, 1}, 50},
    {"topk_half_512x32000_k50", {512, 32000, 1, DType::Float16}, 50},
    {"topk_512x32000_k1", {512, 32000, 1}, 1},
    {"topk_512x32000_k256", {512, 32000, 1}, 256},
    {"topk_512x32000_k1024", {512, 32000, 1}, 1024},
    {"topk_4096x256_k8", {4096, 256, 1}, 8},
    {"weights_4096x256_k8", {4096, 256, 1}, 8, true},
    {"topk_65536x128_k2", {65536, 128, 1}, 2},
    {"topk_4096x1000_k5", {4096, 1000, 1}, 5},
    {"topk_8192x4096_k32", {8192, 4096, 1}, 32},
    {"topk_1x131072_k50", {1, 131072, 1}, 50},
    {"topk_1x131072_k1024", {1, 131072, 1}, 1024},
    {"topk_8x128256_k50", {8, 128256, 1}, 50},
    {"weights_8x128256_k64", {8, 128256, 1}, 64, true},
    {"topk_64x262144_k100", {64, 262144, 1}, 100},
    {"topk_1x16777216_k100", {1, 16777216, 1}, 100},
    {"topk_64x1000x196_k5", {64, 1000, 196}, 5},
    {"sort_65536x64", {65536, 64, 1}, 64},
    {"sort_4096x1024", {4096, 1024, 1}, 1024},
    {"sort_512x8192", {512, 8192, 1}, 8192},
    {"sort_16x131072", {16, 131072, 1}, 131072},
    {"sort_128x65536", {128, 65536, 1}, 65536},
    {"sort_half_128x65536", {128, 65536, 1, DType::Float16}, 65536},
    {"sort_1x1048576", {1, 1048576, 1}, 1048576},
    {"topk_1x1000000_k1000", {1, 1000000, 1}, 1000},
    {"topk_64x262144_k1000", {64, 262144, 1}, 1000},
    {"topk_1x1000000_k5000", {1, 1000000, 1}, 5000},
};

struct Sums {
  const char* name;
  Shape shape;
};

const Sums kSums[] = {
    {"cumsum_512x32000", {512, 32000, 1}},
    {"cumsum_65536x128", {65536, 128, 1}},
    {"cumsum_half_4096x4096", {4096, 4096, 1, DType::Float16}},
    {"cumsum_100000x50", {100000, 50, 1}},
    {"cumsum_16x131072", {16, 131072, 1}},
    {"cumsum_1x1048576", {1, 1048576, 1}},
    {"cumsum_1x33554432", {1, 33554432, 1}},
    {"cumsum_1x4096x4096", {1, 4096, 4096}},
    {"cumsum_half_1x4096x4096", {1, 4096, 4096, DType::Float16}},
    {"cumsum_64x1000x196", {64, 1000, 196}},
    {"cumsum_1x1048576x8", {1, 1048576, 8}},
};

}  // namespace

std::vector<WorkloadMaker> select_workloads(bool quick) {
  std::vector<WorkloadMaker> makers;
  for (const Ranks& r : kRanks) {
    if (quick && makers.size() % 4 != 0) continue;
    makers.push_back({r.name, [=] { return top_k(r.name, r.shape, r.k, r.weights); }});
  }
  makers.push_back({"router_4096x7168x256_k8",
                    [] { return router("router_4096x7168x256_k8", 4096, 7168, 256, 8); }});
  for (const auto& [name, shape] : {std::pair{"argmax_512x32000", Shape{512, 32000, 1}},
                                    std::pair{"argmax_1x1048576", Shape{1, 1048576, 1}},
                                    std::pair{"argmax_8x21x262144", Shape{8, 21, 262144}},
                                    std::pair{"argmax_64x512x196", Shape{64, 512, 196}}}) {
    makers.push_back({name, [name = name, shape = shape] { return positions(name, shape); }});
  }
  for (const Sums& sums : kSums) {
    makers.push_back({sums.name, [=] { return running_sums(sums.name, sums.shape); }});
  }
  return makers;
}

}  // namespace redfuser::tools
