#include "base/error.h"
#include "base/low_bit.h"
#include "ops/arguments.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

void check_castable(const NodeView& view, DType from, DType to) {
  if (size_of(from) == 0 || size_of(to) == 0) {
    view.fail(fmt::format("a cast from {} to {} is not supported", name_of(from), name_of(to)));
  }
}

bool is_text(DType dtype) { return dtype == DType::String; }

// Casts between strings and numbers are opaque.
void set_cast(InferContext& context, DType to) {
  const DType from = context.dtype(0);
  check_castable(context, from, to);
  if (is_text(from) != is_text(to)) context.choose_opaque();
  context.set(0, to, context.shape(0));
}

void infer_cast(InferContext& context) {
  set_cast(context, type_argument(context, "to", DType::Undefined));
}

void infer_cast_like(InferContext& context) { set_cast(context, context.dtype(1)); }

// The power of two above x. Rounding down halves it unless x is exact; rounding to nearest takes
// the upper one from the middle on.
ir::Expr rounded_power(LowerContext& context, ir::Expr x) {
  ir::ExprPool& pool = context.pool();
  const std::string mode = context.text("round_mode", "up");
  if (mode == "up") return x;
  ir::Expr up = pool.cast(DType::Float32, pool.cast(DType::Float8E8M0, x));
  ir::Expr down = pool.mul(up, pool.number(0.5, DType::Float32));
  ir::Expr exact = pool.make(ir::ExprOp::Equal, {up, x});
  if (mode == "nearest") {
    ir::Expr middle = pool.mul(up, pool.number(0.75, DType::Float32));
    exact = pool.make(ir::ExprOp::Or, {exact, pool.make(ir::ExprOp::LessEqual, {middle, x})});
  } else if (mode != "down") {
    context.fail(fmt::format("round_mode \"{}\"", mode));
  }
  return pool.select(exact, up, down);
}

// A saturating cast clamps to the largest value, infinities too.
ir::Expr lower_cast(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType to = context.result().dtype;
  ir::Expr x = context.read_broadcast(0);
  if (!is_low_bit_float(to) || x->dtype == to) return pool.cast(to, x);
  x = pool.cast(DType::Float32, x);
  if (to == DType::Float8E8M0) x = rounded_power(context, x);
  if (context.integer("saturate", 1) != 0) {
    const double largest = low_bit_maximum(to);
    x = pool.make(ir::ExprOp::Min, {x, pool.number(largest, DType::Float32)});
    if (to != DType::Float8E8M0) {
      x = pool.make(ir::ExprOp::Max, {x, pool.number(-largest, DType::Float32)});
    }
  }
  return pool.cast(to, x);
}

void infer_identity(InferContext& context) {
  const ir::Value& value = context.input(0);
  if (is_list(value.dtype)) {
    context.choose_opaque();
    return context.set_list(0, value.dtype, value.shape[0], value.list_form());
  }
  context.set(0, value.dtype, value.shape);
}

ir::Expr lower_identity(LowerContext& context) { return context.read_broadcast(0); }

// In inference the data is unchanged and the mask is all true. Training draws random numbers.
void infer_dropout(InferContext& context) {
  if (context.opset() < 7 && context.integer("is_test", 0) == 0) {
    context.fail("training (is_test 0) is not supported before opset 12");
  }
  if (context.opset() >= 12 && context.has_input(2)) {
    const auto training = context.constant_integers(2);
    if (!training || training->empty() || training->front() != 0) context.choose_opaque();
  }
  context.set(0, context.dtype(0), context.shape(0));
  context.set(1, context.opset() < 10 ? context.dtype(0) : DType::Bool, context.shape(0));
}

ir::Expr lower_dropout(LowerContext& context) {
  if (context.output() == 0) return context.read_broadcast(0);
  return context.pool().number(1, context.result().dtype);
}

constexpr OpDef kCastText{"Cast", "", 6, infer_cast, nullptr};
constexpr OpDef kCastLikeText{"CastLike", "", 15, infer_cast_like, nullptr};
constexpr OpDef kListIdentity{"Identity", "", 1, infer_identity, nullptr};
constexpr OpDef kTrainingDropout{"Dropout", "", 1, infer_dropout, nullptr, true};

constexpr OpDef kOps[] = {
    {"Cast", "", 6, infer_cast, lower_cast, false, &kCastText},
    {"CastLike", "", 15, infer_cast_like, lower_cast, false, &kCastLikeText},
    {"Identity", "", 1, infer_identity, lower_identity, false, &kListIdentity},
    {"Dropout", "", 1, infer_dropout, lower_dropout, false, &kTrainingDropout},
};

}  // namespace

std::span<const OpDef> conversion_ops() { return kOps; }

}  // namespace redfuser::ops
