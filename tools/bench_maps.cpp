// Elementwise steps whose result lies along another axis than an operand.
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

// y is x with its dimensions in another order, and so changed: y = x, or x · Sigmoid(x) + r with r
// of y's sizes.
struct TurnCase {
  const char* name;
  Dims dims;
  std::vector<int> order;
  DType dtype = DType::Float16;
  bool gated = false;
};

const TurnCase kCases[] = {
    {"turn_1000x2048", {1000, 2048}, {1, 0}},
    {"turn_4096x4096", {4096, 4096}, {1, 0}},
    {"turn_4096x4096_float", {4096, 4096}, {1, 0}, DType::Float32},
    {"turn_1023x2047", {1023, 2047}, {1, 0}},
    {"turn_keys_8x512x12x64", {8, 512, 12, 64}, {0, 2, 3, 1}},
    {"turn_channels_last_32x64x56x56", {32, 64, 56, 56}, {0, 2, 3, 1}},
    {"turn_channels_first_32x56x56x64", {32, 56, 56, 64}, {0, 3, 1, 2}},
    {"turn_channels_last_8x3x224x224", {8, 3, 224, 224}, {0, 2, 3, 1}},
    {"turn_32x196x768", {32, 196, 768}, {0, 2, 1}},
    {"turn_gated_2048x4096", {2048, 4096}, {1, 0}, DType::Float16, true},
    {"turn_gated_64x128x96_float", {64, 128, 96}, {2, 1, 0}, DType::Float32, true},
    {"turn_256x512", {256, 512}, {1, 0}},
    {"turn_4096x48", {4096, 48}, {1, 0}},
    {"turn_48x4096", {48, 4096}, {1, 0}},
};

Dims turned(const TurnCase& turn) {
  Dims dims;
  for (const int axis : turn.order) dims.push_back(turn.dims[static_cast<size_t>(axis)]);
  return dims;
}

std::string model_of(const TurnCase& turn) {
  const std::string type = type_name(turn.dtype);
  const std::string dims = fmt::format("{}", fmt::join(turned(turn), ", "));
  std::string text = fmt::format("g ({0}[{1}] x", type, fmt::join(turn.dims, ", "));
  if (turn.gated) text += fmt::format(", {}[{}] r", type, dims);
  text += fmt::format(") => ({}[{}] y) {{ ", type, dims);
  const std::string transpose = fmt::format("Transpose<perm = [{}]>", fmt::join(turn.order, ", "));
  if (turn.gated) {
    text += fmt::format("s = Sigmoid(x) g = Mul(x, s) t = {}(g) y = Add(t, r) }}", transpose);
  } else {
    text += fmt::format("y = {}(x) }}", transpose);
  }
  return model_text(text);
}

// The offset in x of y's element.
int64_t source(const TurnCase& turn, int64_t index) {
  std::vector<int64_t> strides(turn.dims.size(), 1);
  for (size_t d = strides.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * turn.dims[d + 1];
  int64_t offset = 0;
  for (size_t d = turn.order.size(); d-- > 0;) {
    const auto axis = static_cast<size_t>(turn.order[d]);
    offset += index % turn.dims[axis] * strides[axis];
    index /= turn.dims[axis];
  }
  return offset;
}

Workload workload_of(const TurnCase& turn) {
  Workload workload;
  workload.suite = "maps";
  workload.name = turn.name;
  workload.model = model_of(turn);
  workload.inputs["x"] = normal_tensor("x", turn.dtype, turn.dims);
  if (turn.gated) workload.inputs["r"] = normal_tensor("r", turn.dtype, turned(turn));
  workload.width = turned(turn).back();
  workload.rows = workload.inputs["x"].size() / workload.width;
  workload.reference = [turn, inputs = workload.inputs, width = workload.width](int64_t row) {
    std::vector<double> values;
    for (int64_t j = 0; j < width; ++j) {
      const int64_t index = row * width + j;
      const double x = element(inputs.at("x"), source(turn, index));
      values.push_back(turn.gated ? x / (1 + std::exp(-x)) + element(inputs.at("r"), index) : x);
    }
    return values;
  };
  return workload;
}

}  // namespace

std::vector<WorkloadMaker> map_workloads() {
  std::vector<WorkloadMaker> makers;
  for (const TurnCase& turn : kCases)
    makers.push_back({turn.name, [&] { return workload_of(turn); }});
  return makers;
}

}  // namespace redfuser::tools
