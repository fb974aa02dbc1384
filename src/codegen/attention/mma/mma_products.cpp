#include "codegen/attention/mma/mma_products.h"

namespace redfuser::codegen {
namespace {

bool is_half(DType dtype) { return size_of(dtype) == 2; }

MmaOperand operand(DType dtype, ir::Expr extent) {
  MmaOperand result;
  result.element = static_cast<int>(size_of(dtype));
  result.extent = static_cast<int>(extent->integer);
  result.columns = padded_size(result.extent);
  return result;
}

}  // namespace

MmaProducts::MmaProducts(const Target& target, const AttentionSpec& form)
    : query(operand(form.query->dtype, form.depth->extent())),
      key(operand(form.key->dtype, form.depth->extent())),
      value(operand(form.value->dtype, form.column->extent())) {
  const DType q = form.query->dtype, k = form.key->dtype, v = form.value->dtype;
  // With two parts per operand, registers limit the columns of the output sums.
  const bool wide = form.column->extent()->integer > kLargestPortable;
  if (q == DType::Float32 && q == k && q == v && (target.exact_products || wide)) {
    scores_ = values_ = Kind::Scalar;
    return;
  }
  scores_ = q == k && is_half(q) ? Kind::Native : Kind::Parts;
  values_ = is_half(v) && form.rounded_weights ? Kind::Native : Kind::Parts;
  // Lanes read pairs of floats.
  constexpr int kPairPadding = 32;
  for (MmaOperand* pairs : {&query, &key}) {
    if (scores_ == Kind::Parts && pairs->element == 4) pairs->padding = kPairPadding;
  }
}

// TF32 has half the rate of 16 bits, fused multiply-adds an eighth.
int MmaProducts::work(Kind kind, int a, int b) {
  constexpr int kParts = 2, kScalar = 8;
  if (kind == Kind::Native) return 1;
  return kind == Kind::Scalar ? kScalar : kParts * (a / 2 + b / 2 - 1);
}

int MmaProducts::staged_bytes(int keys) const {
  return values_ == Kind::Scalar ? kWarpRows * (keys * 4 + 16) : 0;
}

const char* MmaProducts::name(Kind kind) {
  if (kind == Kind::Native) return "Native";
  return kind == Kind::Parts ? "Parts" : "Scalar";
}

}  // namespace redfuser::codegen
