#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser {
namespace {

void check_castable(const NodeView& view, DType from, DType to) {
  if (size_of(from) == 0 || size_of(to) == 0) {
    view.fail(fmt::format("a cast from {} to {} is not supported", name_of(from), name_of(to)));
  }
}

void infer_cast(InferContext& context) {
  const int64_t code = context.integer("to", 0);
  const bool known = code > 0 && code <= static_cast<int64_t>(DType::BFloat16) &&
                     size_of(static_cast<DType>(code)) != 0;
  if (!known) context.fail(fmt::format("data type {} is not supported", code));
  check_castable(context, context.dtype(0), static_cast<DType>(code));
  context.set(0, static_cast<DType>(code), context.shape(0));
}

void infer_cast_like(InferContext& context) {
  check_castable(context, context.dtype(0), context.dtype(1));
  context.set(0, context.dtype(1), context.shape(0));
}

Expr lower_cast(LowerContext& context) {
  return context.pool().cast(context.result().dtype, context.read_broadcast(0));
}

void infer_identity(InferContext& context) { context.set(0, context.dtype(0), context.shape(0)); }

Expr lower_identity(LowerContext& context) { return context.read_broadcast(0); }

// Inference: the data passes, the mask keeps everything.
void infer_dropout(InferContext& context) {
  if (context.opset() >= 12 && context.has_input(2)) {
    const auto training = context.constant_integers(2);
    if (!training || training->empty() || training->front() != 0) {
      context.fail("training_mode must be constant false");
    }
  }
  context.set(0, context.dtype(0), context.shape(0));
  context.set(1, context.opset() < 10 ? context.dtype(0) : DType::Bool, context.shape(0));
}

Expr lower_dropout(LowerContext& context) {
  if (context.output() == 0) return context.read_broadcast(0);
  return context.pool().number(1, context.result().dtype);
}

constexpr OpDef kOps[] = {
    {"Cast", "", 6, infer_cast, lower_cast},
    {"CastLike", "", 15, infer_cast_like, lower_cast},
    {"Identity", "", 1, infer_identity, lower_identity},
    {"Dropout", "", 7, infer_dropout, lower_dropout},
};

}  // namespace

std::span<const OpDef> conversion_ops() { return kOps; }

}  // namespace redfuser
