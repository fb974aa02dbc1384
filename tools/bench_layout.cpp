// Rows of any layout: softmax, norms and statistics over axes that are strided in memory, several,
// or not neighbours.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

constexpr double kEpsilon = 1e-5;

int64_t element_count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies());
}

bool maps_back(const LayoutShape& layout) {
  return layout.kind == LayoutKind::Softmax || layout.kind == LayoutKind::Norm;
}

// Dimension by dimension, outermost first; the statistics of a group are found once.
class LayoutReference {
 public:
  LayoutReference(const LayoutShape& layout, NamedTensors inputs)
      : kind_(layout.kind),
        back_(maps_back(layout)),
        dims_(layout.dims),
        is_reduced_(dims_.size()),
        is_channel_(dims_.size()),
        inputs_(std::move(inputs)) {
    for (const int axis : layout.reduced) is_reduced_[static_cast<size_t>(axis)] = true;
    for (const int axis : layout.channels) is_channel_[static_cast<size_t>(axis)] = true;
  }

  // Of x's element `index`, or of group `index`.
  double value(int64_t index) {
    if (!back_) return statistics(index).result;
    const Statistics& own = statistics(part(index, is_reduced_, false));
    const double x = element(inputs_.at("x"), index);
    if (kind_ == LayoutKind::Softmax) return std::exp(x - own.largest) / own.result;
    const int64_t channel = part(index, is_channel_, true);
    const double normalised = (x - own.mean) / std::sqrt(own.result + kEpsilon);
    return normalised * element(inputs_.at("g"), channel) + element(inputs_.at("b"), channel);
  }

 private:
  struct Statistics {
    double mean = 0, largest = 0, result = 0;
  };

  // The row-major number of an element among the dimensions of which `flags` is `wanted`.
  int64_t part(int64_t index, const std::vector<bool>& flags, bool wanted) const {
    int64_t result = 0, size = 1;
    for (size_t d = dims_.size(); d-- > 0;) {
      const int64_t at = index % dims_[d];
      index /= dims_[d];
      if (flags[d] != wanted) continue;
      result += at * size;
      size *= dims_[d];
    }
    return result;
  }

  // The offsets of the elements of group 0, or of the first elements of groups.
  std::vector<int64_t> offsets(bool reduced) const {
    std::vector<int64_t> result = {0};
    int64_t stride = 1;
    for (size_t d = dims_.size(); d-- > 0; stride *= dims_[d]) {
      if (is_reduced_[d] != reduced) continue;
      std::vector<int64_t> next;
      for (int64_t at = 0; at < dims_[d]; ++at) {
        for (const int64_t offset : result) next.push_back(offset + at * stride);
      }
      result = std::move(next);
    }
    return result;
  }

  const Statistics& statistics(int64_t group) {
    if (const auto found = known_.find(group); found != known_.end()) return found->second;
    if (within_.empty()) within_ = offsets(true), starts_ = offsets(false);
    const Tensor& x = inputs_.at("x");
    std::vector<double> values;
    for (const int64_t offset : within_) {
      values.push_back(element(x, starts_[static_cast<size_t>(group)] + offset));
    }
    Statistics s;
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    s.mean = sum / static_cast<double>(values.size());
    s.largest = *std::max_element(values.begin(), values.end());
    double squares = 0, exponentials = 0;
    for (const double v : values) {
      squares += (v - s.mean) * (v - s.mean);
      if (kind_ == LayoutKind::Softmax) exponentials += std::exp(v - s.largest);
    }
    s.result = squares / static_cast<double>(values.size());
    if (kind_ == LayoutKind::Softmax) s.result = exponentials;
    if (kind_ == LayoutKind::Sum) s.result = sum;
    if (kind_ == LayoutKind::Max) s.result = s.largest;
    return known_[group] = s;
  }

  LayoutKind kind_;
  bool back_;  // y has x's elements
  Dims dims_;
  std::vector<bool> is_reduced_, is_channel_;
  NamedTensors inputs_;
  std::vector<int64_t> within_, starts_;
  std::map<int64_t, Statistics> known_;
};

const char* body_of(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::Softmax:
      return "f = Cast<to = 1>(x) m = ReduceMax<keepdims = 1>(f, axes) d = Sub(f, m) e = Exp(d) "
             "s = ReduceSum<keepdims = 1>(e, axes) q = Div(e, s) y = Cast<to = TYPE>(q)";
    case LayoutKind::Norm:
      return "f = Cast<to = 1>(x) m = ReduceMean<keepdims = 1>(f, axes) d = Sub(f, m) "
             "q = Mul(d, d) v = ReduceMean<keepdims = 1>(q, axes) a = Add(v, eps) r = Sqrt(a) "
             "n = Div(d, r) gf = Cast<to = 1>(g) bf = Cast<to = 1>(b) w = Mul(n, gf) "
             "z = Add(w, bf) y = Cast<to = TYPE>(z)";
    case LayoutKind::Sum:
      return "f = Cast<to = 1>(x) y = ReduceSum<keepdims = 0>(f, axes)";
    case LayoutKind::Max:
      return "f = Cast<to = 1>(x) y = ReduceMax<keepdims = 0>(f, axes)";
    case LayoutKind::Variance:
      return "f = Cast<to = 1>(x) m = ReduceMean<keepdims = 1>(f, axes) d = Sub(f, m) "
             "s = Mul(d, d) y = ReduceMean<keepdims = 0>(s, axes)";
  }
  return "";
}

std::string shape_text(const Dims& dims) { return fmt::format("{}", fmt::join(dims, ", ")); }

Dims channel_dims(const LayoutShape& layout) {
  Dims dims(layout.dims.size(), 1);
  for (const int axis : layout.channels) {
    dims[static_cast<size_t>(axis)] = layout.dims[static_cast<size_t>(axis)];
  }
  return dims;
}

}  // namespace

std::string layout_model(const LayoutShape& layout, const char* operators) {
  const std::string type = type_name(layout.dtype);
  std::string inputs = fmt::format("{}[{}] x", type, shape_text(layout.dims));
  if (layout.kind == LayoutKind::Norm) {
    // Operators take one number per channel, expressions what broadcasts.
    const Dims dims = channel_dims(layout);
    const std::string shape = operators ? fmt::to_string(element_count(dims)) : shape_text(dims);
    for (const char* name : {"g", "b"}) inputs += fmt::format(", {}[{}] {}", type, shape, name);
  }
  Dims kept;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const auto axis = static_cast<int>(d);
    if (std::count(layout.reduced.begin(), layout.reduced.end(), axis) == 0) {
      kept.push_back(layout.dims[d]);
    }
  }
  std::string body = operators ? operators : body_of(layout.kind);
  if (const size_t at = body.find("TYPE"); at != std::string::npos) {
    body.replace(at, 4, fmt::to_string(type_number(layout.dtype)));
  }
  const bool back = maps_back(layout);
  return model_text(
      fmt::format("g ({}) => ({}[{}] y) {{ axes = Constant<value = int64[{}] {{{}}}>() "
                  "eps = Constant<value = float {{{}}}>() {} }}",
                  inputs, back ? type : "float", shape_text(back ? layout.dims : kept),
                  layout.reduced.size(), fmt::join(layout.reduced, ", "), kEpsilon, body));
}

Workload layout_workload(const std::string& name, const LayoutShape& layout,
                         const char* operators) {
  Workload workload;
  workload.suite = "layout";
  workload.name = name;
  workload.inputs["x"] = normal_tensor("x", layout.dtype, layout.dims);
  if (layout.kind == LayoutKind::Norm) {
    Dims dims = channel_dims(layout);
    if (operators) dims = {element_count(dims)};
    for (const char* parameter : {"g", "b"}) {
      workload.inputs[parameter] = normal_tensor(parameter, layout.dtype, dims);
    }
  }
  auto reference = std::make_shared<LayoutReference>(layout, workload.inputs);
  workload.model = layout_model(layout, operators);
  workload.width = maps_back(layout) ? layout.dims.back() : 1;
  workload.rows = workload.inputs["x"].size() / workload.width;
  if (!maps_back(layout)) {
    for (const int axis : layout.reduced) workload.rows /= layout.dims[static_cast<size_t>(axis)];
  }
  workload.reference = [reference, width = workload.width](int64_t row) {
    std::vector<double> values;
    for (int64_t j = 0; j < width; ++j) values.push_back(reference->value(row * width + j));
    return values;
  };
  return workload;
}

namespace {

struct LayoutCase {
  const char* name;
  LayoutShape shape;
  const char* operators = nullptr;
};

constexpr const char* kInstanceNorm = "y = InstanceNormalization<epsilon = 0.00001>(x, g, b)";

using Kind = LayoutKind;
const LayoutCase kCases[] = {
    {"softmax_axis1_64x512x196", {Kind::Softmax, {64, 512, 196}, {1}}, "y = Softmax<axis = 1>(x)"},
    {"softmax_axis0_512x64x196", {Kind::Softmax, {512, 64, 196}, {0}}, "y = Softmax<axis = 0>(x)"},
    {"softmax_last_64x196x512", {Kind::Softmax, {64, 196, 512}, {2}}, "y = Softmax<axis = 2>(x)"},
    {"softmax_axis1_64x512x197", {Kind::Softmax, {64, 512, 197}, {1}}, "y = Softmax<axis = 1>(x)"},
    {"softmax_axis0_4096x8192", {Kind::Softmax, {4096, 8192}, {0}}, "y = Softmax<axis = 0>(x)"},
    {"softmax_axis0_65536x128", {Kind::Softmax, {65536, 128}, {0}}, "y = Softmax<axis = 0>(x)"},
    {"softmax_axes12_256x64x512", {Kind::Softmax, {256, 64, 512}, {1, 2}}},
    {"softmax_axes02_64x256x512", {Kind::Softmax, {64, 256, 512}, {0, 2}}},
    {"softmax_axes13_16x64x64x128", {Kind::Softmax, {16, 64, 64, 128}, {1, 3}}},
    {"softmax_axes02_32x64x32x128", {Kind::Softmax, {32, 64, 32, 128}, {0, 2}}},
    {"groupnorm_16x512x64x64", {Kind::Norm, {16, 32, 16, 64, 64}, {2, 3, 4}, {1, 2}}},
    {"groupnorm_16x64x64x512_nhwc", {Kind::Norm, {16, 4096, 32, 16}, {1, 3}, {2, 3}}},
    {"groupnorm_8x320x32x32", {Kind::Norm, {8, 32, 10, 32, 32}, {2, 3, 4}, {1, 2}}},
    {"groupnorm_8x320x7x7", {Kind::Norm, {8, 32, 10, 7, 7}, {2, 3, 4}, {1, 2}}},
    {"instancenorm_8x64x256x256", {Kind::Norm, {8, 64, 256, 256}, {2, 3}, {1}}, kInstanceNorm},
    {"instancenorm_8x256x256x64_nhwc", {Kind::Norm, {8, 65536, 64}, {1}, {2}}},
    {"batchnorm_32x256x56x56", {Kind::Norm, {32, 256, 56, 56}, {0, 2, 3}, {1}}},
    {"batchnorm_32x56x56x256_nhwc", {Kind::Norm, {32, 56, 56, 256}, {0, 1, 2}, {3}}},
    {"column_sums_4096x8192", {Kind::Sum, {4096, 8192}, {0}}},
    {"column_sums_100000x64", {Kind::Sum, {100000, 64}, {0}}},
    {"column_sums_64x512x196", {Kind::Sum, {64, 512, 196}, {1}}},
    {"column_max_fp32_4096x4099", {Kind::Max, {4096, 4099}, {0}, {}, DType::Float32}},
    {"row_sums_4096x8192", {Kind::Sum, {4096, 8192}, {1}}},
    {"sums_axes02_64x256x1024", {Kind::Sum, {64, 256, 1024}, {0, 2}}},
    {"variance_axes02_64x256x1024", {Kind::Variance, {64, 256, 1024}, {0, 2}}},
    {"variance_axes023_32x256x56x56", {Kind::Variance, {32, 256, 56, 56}, {0, 2, 3}}},
    {"variance_axis0_16384x1024", {Kind::Variance, {16384, 1024}, {0}}},
};

}  // namespace

std::vector<WorkloadMaker> layout_workloads() {
  std::vector<WorkloadMaker> makers;
  for (const LayoutCase& layout : kCases) {
    makers.push_back({layout.name, [&layout] {
                        return layout_workload(layout.name, layout.shape, layout.operators);
                      }});
  }
  return makers;
}

}  // namespace redfuser::tools
