// Shape rules of scatters, scans and selections, which have no lowering: src/cpu has their kernels.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

void infer_scatter(InferContext& context) {
  if (context.dtype(2) != context.dtype(0)) context.fail("data and updates differ in dtype");
  if (!is_integer(context.dtype(1))) context.fail("the indices must be integers");
  context.set(0, context.dtype(0), context.shape(0));
}

void infer_scatter_elements(InferContext& context) {
  if (context.rank(1) != context.rank(0) || context.rank(2) != context.rank(0)) {
    context.fail("data, indices and updates differ in rank");
  }
  context.axis(context.integer("axis", 0), context.rank(0));
  for (int d = 0; d < context.rank(0); ++d) {
    context.require_equal(context.shape(1)[d], context.shape(2)[d],
                          fmt::format("dimension {} of indices and updates", d));
  }
  infer_scatter(context);
}

void infer_scatter_nd(InferContext& context) {
  const auto length =
      context.rank(1) > 0 ? constant_of(context.shape(1).back()) : std::optional<int64_t>(0);
  if (!length) context.fail_unknown("the length of the index tuples is known only at run time");
  if (*length < 1 || *length > context.rank(0)) {
    context.fail(fmt::format("indices {} do not fit data {}",
                             shape_text(context.pool(), context.shape(1)),
                             shape_text(context.pool(), context.shape(0))));
  }
  infer_scatter(context);
}

std::vector<Positions> scatter_positions(const LowerContext& context) {
  const int axis = context.axis(context.integer("axis", 0), context.rank(0));
  return {index_positions(context, 1, context.shape(0)[axis])};
}

std::vector<Positions> scatter_nd_positions(const LowerContext& context) {
  const auto length = static_cast<size_t>(*constant_of(context.shape(1).back()));
  return tuple_positions(context, 1, std::span(context.shape(0)).first(length));
}

void infer_nonzero(InferContext& context) {
  context.set(0, DType::Int64,
              {context.pool().integer(context.rank(0)), context.fresh_size("count")});
}

// The input's shape with dimension `axis` replaced, or a vector without `axis`.
Shape selected(const InferContext& context, ir::Expr count) {
  if (!context.has("axis")) return {count};
  Shape shape = context.shape(0);
  shape[context.axis(context.integer("axis", 0), context.rank(0))] = count;
  return shape;
}

void infer_compress(InferContext& context) {
  if (context.dtype(1) != DType::Bool) context.fail("the condition must be bool");
  ir::Expr length = product_of(context.pool(), context.shape(0));
  if (context.has("axis")) {
    length = context.shape(0)[context.axis(context.integer("axis", 0), context.rank(0))];
  }
  if (context.rank(1) != 1) context.fail("the condition must be a vector");
  context.require_at_most(context.shape(1)[0], length, "the length of the condition");
  context.set(0, context.dtype(0), selected(context, context.fresh_size("count")));
}

void infer_unique(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  if (context.dtype(0) == DType::String) context.fail("strings are not supported");
  ir::Expr count = context.fresh_size("count");
  ir::Expr length = product_of(pool, context.shape(0));
  if (context.has("axis")) {
    length = context.shape(0)[context.axis(context.integer("axis", 0), context.rank(0))];
  }
  context.set(0, context.dtype(0), selected(context, count));
  context.set(1, DType::Int64, {count});
  context.set(2, DType::Int64, {length});
  context.set(3, DType::Int64, {count});
}

void infer_non_max_suppression(InferContext& context) {
  if (context.rank(0) != 3 || context.rank(1) != 3) {
    context.fail("boxes and scores must be of rank 3");
  }
  context.require_equal(context.shape(0)[0], context.shape(1)[0], "batches of boxes and scores");
  context.require_equal(context.shape(0)[1], context.shape(1)[2], "numbers of boxes and scores");
  context.set(0, DType::Int64, {context.fresh_size("count"), context.pool().integer(3)});
}

PrecisionClass moves(const NodeView&) { return PrecisionClass::Moves; }

// Sums and products round in the type of the data, once for every update.
PrecisionClass scatters(const NodeView& view) {
  const std::string reduction = view.text("reduction", "none");
  return reduction == "add" || reduction == "mul" ? PrecisionClass::Single : PrecisionClass::Moves;
}

constexpr OpDef kOps[] = {
    with_positions({"Scatter", "", 9, infer_scatter_elements, nullptr, false, nullptr, scatters},
                   scatter_positions),
    with_positions(
        {"ScatterElements", "", 11, infer_scatter_elements, nullptr, false, nullptr, scatters},
        scatter_positions),
    with_positions({"ScatterND", "", 11, infer_scatter_nd, nullptr, false, nullptr, scatters},
                   scatter_nd_positions),
    {"NonZero", "", 9, infer_nonzero, nullptr},
    {"Compress", "", 9, infer_compress, nullptr, false, nullptr, moves},
    {"Unique", "", 11, infer_unique, nullptr},
    {"NonMaxSuppression", "", 10, infer_non_max_suppression, nullptr},
};

}  // namespace

std::span<const OpDef> scatter_ops() { return kOps; }

}  // namespace redfuser::ops
