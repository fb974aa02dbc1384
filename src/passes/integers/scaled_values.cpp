#include "passes/integers/scaled_values.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/contraction.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::passes {
namespace {

int zero_of(const ir::WeightCodes& codes, int64_t line) {
  return codes.zeros.defined() ? codes.zeros.as<uint8_t>()[line] : codes.zero;
}

// Of differences of codes and zero points.
struct Extent {
  bool signed_bytes = true;
  int64_t largest = 0;  // Σ of magnitudes of a line
};
Extent extent_of(const ir::WeightCodes& codes) {
  Extent extent;
  for (int64_t line = 0; line < codes.lines; ++line) {
    const auto* row = codes.codes.as<uint8_t>() + line * codes.depth;
    const int zero = zero_of(codes, line);
    int64_t sum = 0;
    int low = 0, high = 0;
    for (int64_t k = 0; k < codes.depth; ++k) {
      const int difference = row[k] - zero;
      low = std::min(low, difference);
      high = std::max(high, difference);
      sum += std::abs(difference);
    }
    extent.signed_bytes &= low >= -128 && high <= 127;
    extent.largest = std::max(extent.largest, sum);
  }
  return extent;
}

// The same with lines along the other axis, where one scale and zero point serves all of them.
std::shared_ptr<const ir::WeightCodes> turned(const ir::WeightCodes& codes) {
  const auto* scales = codes.scales.as<float>();
  for (int64_t line = 0; line < codes.lines; ++line) {
    if (scales[line] != scales[0] || zero_of(codes, line) != zero_of(codes, 0)) return nullptr;
  }
  auto result = std::make_shared<ir::WeightCodes>();
  result->bits = codes.bits;
  result->depth_axis = 1 - codes.depth_axis;
  result->lines = codes.depth;
  result->depth = result->block = codes.lines;
  result->zero = zero_of(codes, 0);
  result->codes = Tensor(DType::UInt8, {result->lines, result->depth});
  result->scales = Tensor(DType::Float32, {result->lines, 1});
  std::fill_n(result->scales.as<float>(), result->lines, scales[0]);
  const auto* from = codes.codes.as<uint8_t>();
  auto* to = result->codes.as<uint8_t>();
  for (int64_t line = 0; line < codes.lines; ++line) {
    for (int64_t k = 0; k < codes.depth; ++k) to[k * codes.lines + line] = *from++;
  }
  return result;
}

}  // namespace

std::optional<ScaledValue> scaled_value(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  if (value.producer < 0 || value.is_constant() || value.dtype != DType::Float32) {
    return std::nullopt;
  }
  const ir::Node& node = graph.nodes[static_cast<size_t>(value.producer)];
  if (node.def == nullptr || node.def->lower == nullptr) return std::nullopt;
  const std::vector<ir::Expr> axes = ops::shared_index(graph, id);
  ops::Lowering lowering(graph, [&](ir::ValueId v) { return v == id; });
  const auto scaled = ir::as_scaled_integer(lowering.element(id, axes));
  if (!scaled || scaled->code->integer < 0 || scaled->code->args != axes) return std::nullopt;
  const auto codes = static_cast<ir::ValueId>(scaled->code->integer);
  const bool whole = graph.values[static_cast<size_t>(codes)].shape == value.shape;
  const int64_t low = scaled->code->dtype == DType::Int8 ? -128 : 0;
  if (!whole || scaled->zero < low || scaled->zero > low + 255) return std::nullopt;
  return ScaledValue{codes, scaled->zero, scaled->scale};
}

std::optional<ScaledWeights> scaled_weights(const ir::Value& constant, size_t depth_axis) {
  if (!constant.is_constant() || !constant.codes || constant.dtype != DType::Float32) {
    return std::nullopt;
  }
  if (constant.codes->block != constant.codes->depth) return std::nullopt;
  std::shared_ptr<const ir::WeightCodes> kept = constant.codes;
  if (kept->depth_axis != depth_axis) {
    kept = constant.constant.dims().size() == 2 && kept->lines > 0 ? turned(*kept) : nullptr;
  }
  if (kept == nullptr) return std::nullopt;
  const ir::WeightCodes& codes = *kept;
  const Extent extent = extent_of(codes);
  const bool bytes = extent.signed_bytes, across = codes.depth_axis == 0;
  ScaledWeights result{Tensor(bytes ? DType::Int8 : DType::UInt8, constant.constant.dims()),
                       Tensor(), codes.scales, extent.largest};
  auto* to = static_cast<uint8_t*>(result.codes.mutable_data());
  const int64_t line_step = across ? 1 : codes.depth, depth_step = across ? codes.lines : 1;
  for (int64_t line = 0; line < codes.lines; ++line) {
    const auto* row = codes.codes.as<uint8_t>() + line * codes.depth;
    const int shift = bytes ? zero_of(codes, line) : 0;
    for (int64_t k = 0; k < codes.depth; ++k) {
      to[line * line_step + k * depth_step] = static_cast<uint8_t>(row[k] - shift);
    }
  }
  if (bytes) return result;
  result.zeros = Tensor(DType::UInt8, {codes.lines});
  for (int64_t line = 0; line < codes.lines; ++line) {
    result.zeros.as<uint8_t>()[line] = static_cast<uint8_t>(zero_of(codes, line));
  }
  return result;
}

}  // namespace redfuser::passes
