// Models in 16-bit floats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser {

struct ConvertOptions {
  DType to = DType::Float16;  // or BFloat16
  bool keep_io = false;       // inputs and outputs stay fp32
};

// A constant that stays fp32, as do the values computed from it, because the narrow type overflows.
struct OverflowingTensor {
  std::string name;
  double largest = 0;  // magnitude of its finite elements
  int64_t elements = 0;
};

struct ConvertedModel {
  Model model;
  std::vector<OverflowingTensor> overflowing;  // by name
};

// Converts an fp32 model to one that stores weights and activations in 16 bits. Matrix products,
// convolutions and elementwise operators on their results become narrow; reductions, exponentials,
// quotients, statistics of norms, positions and masks stay fp32, with casts between. The model
// consists of the primitive operators of the ONNX standard. Fp64 and 16-bit values stay as they
// are.
//
// UserError for another type, or where bfloat16 needs a newer opset than the model has.
ConvertedModel convert(const Model& model, const ConvertOptions& options);

// A floating tensor in another floating type, rounded to nearest even. UserError for other types.
Tensor cast_floats(const Tensor& tensor, DType dtype);

}  // namespace redfuser
