// Conversion of fp32 graphs to 16-bit floats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

struct FloatConversion {
  DType to = DType::Float16;  // or BFloat16
  bool keep_io = false;       // inputs and outputs stay fp32
  // Whether ONNX lets a node have floats of type `to`; null: always.
  std::function<bool(const ir::Node&)> allowed = nullptr;
};

// A constant that stays fp32 because it has finite elements beyond the narrow type's range.
struct OverflowingConstant {
  std::string name;
  double largest = 0;  // magnitude of its finite elements
  int64_t elements = 0;
};

// Stores the operands and results of products, and elementwise functions of the results, in `to`.
// The rest stays fp32, with casts between: reductions and products that they sum, growing
// functions, quotients by data, rounding, functions of indices and of integers. A narrow operand of
// an fp32 node is widened; an fp32 value that a product reads is rounded once, for the product and
// for every other node that may be narrow.
//
// A constant stays fp32, and its reader computes in fp32, if the narrow type cannot represent it:
// values out of range, or so near the limit that one more addition overflows (fills of masks),
// values that are all flushed to zero (an epsilon), and integers that are not exact (positions).
// Infinities are kept. Returns the constants that overflow, by name.
//
// A node whose operator does not allow 16-bit floats computes in fp32. Float64 and 16-bit values
// stay as they are, so a second run changes nothing. Throws UserError if casts to bfloat16 need a
// newer opset than the model has.
std::vector<OverflowingConstant> convert_floats(ir::Graph& graph,
                                                const FloatConversion& conversion);

}  // namespace redfuser::passes
