#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

void infer_expand(InferContext& context) {
  auto target = size_argument(context, "shape", 1);
  if (!target) context.fail("no target shape");
  // An unknown target size becomes a symbol, which is then broadcast.
  for (size_t i = 0; i < target->size(); ++i) {
    ir::Expr& size = (*target)[i];
    if (size->has_read) size = context.fresh_size(fmt::format("target.{}", i));
  }
  context.set(0, context.dtype(0), context.broadcast(context.shape(0), *target));
}

ir::Expr lower_expand(LowerContext& context) { return context.read_broadcast(0); }

void infer_tile(InferContext& context) {
  const auto repeats = size_argument(context, "repeats", 1);
  if (!repeats || static_cast<int>(repeats->size()) != context.rank(0)) {
    context.fail(fmt::format("repeats must name {} dimensions", context.rank(0)));
  }
  Shape shape = context.shape(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = context.pool().mul(shape[i], (*repeats)[i]);
  }
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_tile(LowerContext& context) {
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  for (size_t i = 0; i < index.size(); ++i) {
    ir::Expr size = context.shape(0)[i];
    if (size != context.result().shape[i]) index[i] = context.pool().floormod(index[i], size);
  }
  return context.read(0, std::move(index));
}

constexpr OpDef kOps[] = {
    {"Expand", "", 8, infer_expand, lower_expand},
    {"Tile", "", 6, infer_tile, lower_tile},
};

}  // namespace

std::span<const OpDef> repeat_ops() { return kOps; }

}  // namespace redfuser::ops
