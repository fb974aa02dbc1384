// Values that are 8-bit integers times scales.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

// Every element is (code − zero) · scale, rounded to fp32 at most, with the code at the same index.
struct ScaledValue {
  ir::ValueId codes = ir::kAbsent;  // of int8 or uint8
  int64_t zero = 0;
  double scale = 1;
};

// What the expression of the value's producer shows; nullopt for constants too.
std::optional<ScaledValue> scaled_value(const ir::Graph& graph, ir::ValueId value);

// A constant: element [line, depth] of its matrix is (code − zero of the line) · scale of the line.
struct ScaledWeights {
  Tensor codes;         // int8 or uint8, of the constant's dimensions
  Tensor zeros;         // as `codes`, one for each line; not defined where all are 0
  Tensor scales;        // Float32, of the lines
  int64_t largest = 0;  // Σ |code − zero| of a line, at most
};

// With lines along `depth_axis`. nullopt unless the constant has codes (ir::WeightCodes) in blocks
// of whole such lines, or one scale and zero point for a whole matrix.
std::optional<ScaledWeights> scaled_weights(const ir::Value& constant, size_t depth_axis);

}  // namespace redfuser::passes
