// A product of 8-bit integers as its kernel takes it (src/device/product/integer_product.cuh).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Element k of line l: start + line · l + depth · k, in elements. Lines are rows of the left matrix
// or columns of a right one.
struct IntegerOperand {
  int64_t value = -1;
  DType dtype = DType::Int8;
  ir::Expr start = nullptr;  // over the axes of the batch
  ir::Expr line = nullptr, depth = nullptr;
  ir::Expr zero = nullptr;  // flat, over the axes of the batch and of the lines; null for 0

  // Contiguous along the contracted axis, else along its lines.
  bool along() const { return depth->is_constant(1); }
};

struct IntegerForm {
  std::vector<ir::Expr> batch, rows, columns;  // axes
  ir::Expr batches = nullptr, m = nullptr, n = nullptr, k = nullptr;
  IntegerOperand a;
  std::vector<IntegerOperand> b;  // of one size, type and layout
  int64_t value = -1;             // value[offset] = epilogue
  ir::Expr epilogue = nullptr;    // flat, over the leaves `products`
  ir::Expr offset = nullptr;
  std::vector<ir::Expr> products;

  // Whether lines of a, or of the matrices b, are summed for the other's zero point.
  bool sums_a() const;
  bool sums_b() const { return a.zero != nullptr; }
};

// The form of a product of integers, or why there is none.
std::variant<IntegerForm, std::string> integer_form(StepBuilder& builder,
                                                    const fuse::ProductStep& step);

}  // namespace redfuser::codegen
