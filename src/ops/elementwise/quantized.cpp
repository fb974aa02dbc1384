#include "ops/elementwise/quantized.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/low_bit.h"
#include "base/tensors/scales.h"

namespace redfuser::ops {
namespace {

struct Bounds {
  double low, high;
};

Bounds bounds_of(const NodeView& view, DType dtype) {
  if (is_low_bit_float(dtype) && dtype != DType::Float8E8M0) {
    const double largest = low_bit_maximum(dtype);
    return {-largest, largest};
  }
  const int bits = bits_of(dtype);
  if (!is_integer(dtype) || bits > 16) {
    view.fail(fmt::format("quantised dtype {} is not supported", name_of(dtype)));
  }
  const bool is_signed =
      dtype == DType::Int2 || dtype == DType::Int4 || dtype == DType::Int8 || dtype == DType::Int16;
  const double range = static_cast<double>(1 << bits);
  return is_signed ? Bounds{-range / 2, range / 2 - 1} : Bounds{0, range - 1};
}

}  // namespace

void check_quantized(const NodeView& view, DType dtype) { bounds_of(view, dtype); }

ir::Expr quantized_sum(const NodeView& view, ir::Expr sum, const Scales& scales, ir::Expr zero,
                       DType dtype) {
  ir::ExprPool& pool = view.pool();
  const auto real = [&](ir::Expr x) { return pool.cast(DType::Float32, x); };
  ir::Expr scale = pool.div(pool.mul(real(scales.a), real(scales.b)), real(scales.result));
  ir::Expr value = pool.make(ir::ExprOp::Round, {pool.mul(real(sum), scale)});
  return quantized(view, value, zero, dtype);
}

ir::Expr quantized(const NodeView& view, ir::Expr value, ir::Expr zero, DType dtype) {
  ir::ExprPool& pool = view.pool();
  const Bounds bounds = bounds_of(view, dtype);
  if (zero != nullptr && !is_low_bit_float(dtype)) {
    value = pool.add(value, pool.cast(DType::Float32, zero));
  }
  value = pool.make(ir::ExprOp::Max, {value, pool.number(bounds.low, DType::Float32)});
  value = pool.make(ir::ExprOp::Min, {value, pool.number(bounds.high, DType::Float32)});
  return pool.cast(dtype, value);
}

void check_scale(const NodeView& view, int input, bool divides) {
  const ir::Value& scale = view.input(input);
  if (!scale.is_constant()) return;
  const std::string fault = fault_of_scale(scale.name, scale.constant, divides);
  if (!fault.empty()) view.fail(fault);
}

}  // namespace redfuser::ops
