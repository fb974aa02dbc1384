// Fp32 graphs in 16-bit floats.
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

// Stores products' operands and results, and what follows from them, in `to`, and computes the
// rest in fp32 with casts between: reductions and whatever enters them by a product, growing
// functions, quotients by data, rounding, functions of indices and of integers. A narrow operand
// of an fp32 node is widened; an fp32 value that a product reads is rounded once, for the product
// and for every other node that can compute narrowly.
//
// A constant stays fp32, and the node that reads it computes in fp32, where the narrow type cannot
// stand for it: beyond its range, or so near its end that one more addition passes it (fills of
// masks), wholly flushed to zero (an epsilon), or whole numbers that are not exact (positions).
// Infinities are kept. Returns the constants that overflow, by name.
//
// A node that may not have 16-bit floats computes in fp32. Float64 and 16-bit values stay as they
// are; so a second run changes nothing. Throws UserError where casts to bfloat16 need a newer opset
// than the model has.
std::vector<OverflowingConstant> convert_floats(ir::Graph& graph,
                                                const FloatConversion& conversion);

}  // namespace redfuser::passes
