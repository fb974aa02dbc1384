// Operators that keep the order of elements, and Transpose.
#include <algorithm>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/reindex.h"

namespace redfuser::ops {
namespace {

ir::Expr lower_same_order(LowerContext& context) {
  return context.read(
      0, reshape_index(context.pool(), context.result().shape, context.shape(0), context.index()));
}

// total / known, by polynomial division if that is exact.
ir::Expr quotient(ir::ExprPool& pool, ir::Expr total, ir::Expr known) {
  ir::Division division = divide(to_polynomial(total), to_polynomial(known));
  if (division.remainder.empty()) return from_polynomial(pool, division.quotient);
  return pool.floordiv(total, known);
}

// Target sizes with 0 (copy) resolved; -1 and unknown sizes as they are.
Shape copied_sizes(const NodeView& view, Shape target, bool allow_zero) {
  ir::ExprPool& pool = view.pool();
  const Shape& source = view.shape(0);
  for (size_t i = 0; i < target.size() && !allow_zero; ++i) {
    const bool open = target[i]->has_read;
    if (!open && !target[i]->is_constant(0)) continue;
    if (i >= source.size()) {
      if (open) continue;
      view.fail(fmt::format("dimension {} copies from an input of rank {}", i, source.size()));
    }
    target[i] = open ? pool.select(equal(pool, target[i], pool.integer(0)), source[i], target[i])
                     : source[i];
  }
  return target;
}

// Solves a size of -1 from the others.
Shape solved_sizes(const NodeView& view, Shape target) {
  ir::ExprPool& pool = view.pool();
  ir::Expr minus_one = pool.integer(-1), one = pool.integer(1), known = one;
  ir::Expr total = product_of(pool, view.shape(0));
  const Shape& source = view.shape(0);
  for (ir::Expr size : target) {
    // Dimensions are never negative, even if that is not proved.
    const bool copied = std::count(source.begin(), source.end(), size) > 0;
    known = pool.mul(known, copied ? size : pool.select(equal(pool, size, minus_one), one, size));
  }
  int solved = 0;
  for (ir::Expr& size : target) {
    if (size == minus_one) {
      if (++solved > 1) view.fail("more than one dimension is -1");
      if (known->is_constant(0)) view.fail("-1 beside a dimension of 0");
      size = quotient(pool, total, known);
    } else if (size->has_read) {
      size = pool.select(equal(pool, size, minus_one), pool.floordiv(total, known), size);
    }
  }
  return target;
}

// More than any supported rank; products of more symbolic sizes take long.
constexpr size_t kLongestTarget = 64;

void infer_reshape(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  auto target = size_argument(context, "shape", 1);
  if (!target) context.fail("no target shape");
  if (target->size() > kLongestTarget) {
    context.fail(fmt::format("a target shape of {} sizes is too long", target->size()));
  }
  Shape shape = copied_sizes(context, *target, context.integer("allowzero", 0) != 0);
  shape = solved_sizes(context, std::move(shape));
  const bool known =
      std::none_of(shape.begin(), shape.end(), [](ir::Expr size) { return size->has_read; });
  if (known) {
    context.require_equal(product_of(pool, context.shape(0)), product_of(pool, shape),
                          fmt::format("{} cannot be reshaped to {}",
                                      shape_text(pool, context.shape(0)), shape_text(pool, shape)));
  }
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_flatten(InferContext& context) {
  const Shape& shape = context.shape(0);
  const int64_t rank = context.rank(0), given = context.integer("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) context.fail(fmt::format("axis {} for rank {}", given, rank));
  const std::span<const ir::Expr> sizes(shape);
  context.set(0, context.dtype(0),
              {product_of(context.pool(), sizes.first(axis)),
               product_of(context.pool(), sizes.subspan(axis))});
}

// Without axes, a dimension that only a run knows is taken not to be 1. Where it is, this check,
// whose sizes then differ and the second is 1, asks for a plan of the run's sizes.
void check_kept(InferContext& context, ir::Expr size) {
  ir::ExprPool& pool = context.pool();
  ir::Expr other = pool.select(equal(pool, size, pool.integer(1)), pool.integer(0), size);
  context.require_broadcast(other, size, "a dimension that is 1 in this run is squeezed");
}

void infer_squeeze(InferContext& context) {
  const Shape& shape = context.shape(0);
  auto axes = axes_argument(context, "axes", 1, context.rank(0));
  Shape result;
  for (int i = 0; i < context.rank(0); ++i) {
    const bool named = axes && std::count(axes->begin(), axes->end(), i) > 0;
    if (named) context.require_equal(shape[i], context.pool().integer(1), "a squeezed dimension");
    if (named || (!axes && shape[i]->is_constant(1))) continue;
    if (!axes) check_kept(context, shape[i]);
    result.push_back(shape[i]);
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_unsqueeze(InferContext& context) {
  const auto given = constant_argument(context, "axes", 1);
  if (!given) context.fail("no axes");
  const int rank = context.rank(0) + static_cast<int>(given->size());
  const std::vector<int> axes = *axes_argument(context, "axes", 1, rank);
  Shape result;
  for (int i = 0, next = 0; i < rank; ++i) {
    const bool inserted = std::count(axes.begin(), axes.end(), i) > 0;
    result.push_back(inserted ? context.pool().integer(1) : context.shape(0)[next++]);
  }
  context.set(0, context.dtype(0), std::move(result));
}

// perm: result dimension i is input dimension perm[i].
std::vector<int64_t> permutation(const NodeView& view) {
  const int rank = view.rank(0);
  std::vector<int64_t> reversed;
  for (int i = rank; i-- > 0;) reversed.push_back(i);
  auto perm = view.integers("perm", reversed);
  auto sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed) view.fail(fmt::format("perm is no permutation of {} axes", rank));
  return perm;
}

void infer_transpose(InferContext& context) {
  Shape result;
  for (int64_t axis : permutation(context)) result.push_back(context.shape(0)[axis]);
  context.set(0, context.dtype(0), std::move(result));
}

ir::Expr lower_transpose(LowerContext& context) {
  const auto perm = permutation(context);
  std::vector<ir::Expr> index(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) index[perm[i]] = context.index()[i];
  return context.read(0, std::move(index));
}

// The input, the reshaped input, and the permuted reshaped input of the two block operators.
struct BlockView {
  Shape split;
  std::vector<int> perm;  // permuted dimension i is split dimension perm[i]
  Shape result;
};

BlockView depth_to_space_view(const NodeView& view) {
  ir::ExprPool& pool = view.pool();
  if (view.rank(0) != 4) view.fail("the input must be of rank 4");
  const Shape& in = view.shape(0);
  ir::Expr block = pool.integer(view.integer("blocksize", 0));
  if (block->integer < 1) view.fail("blocksize must be positive");
  ir::Expr depth = quotient(pool, in[1], pool.mul(block, block));
  const bool column_row_depth = view.text("mode", "DCR") == "CRD";
  BlockView blocks;
  blocks.result = {in[0], depth, pool.mul(in[2], block), pool.mul(in[3], block)};
  if (column_row_depth) {
    blocks.split = {in[0], depth, block, block, in[2], in[3]};
    blocks.perm = {0, 1, 4, 2, 5, 3};
  } else {
    blocks.split = {in[0], block, block, depth, in[2], in[3]};
    blocks.perm = {0, 3, 4, 1, 5, 2};
  }
  return blocks;
}

BlockView space_to_depth_view(const NodeView& view) {
  ir::ExprPool& pool = view.pool();
  if (view.rank(0) != 4) view.fail("the input must be of rank 4");
  const Shape& in = view.shape(0);
  ir::Expr block = pool.integer(view.integer("blocksize", 0));
  if (block->integer < 1) view.fail("blocksize must be positive");
  ir::Expr height = quotient(pool, in[2], block), width = quotient(pool, in[3], block);
  BlockView blocks;
  blocks.split = {in[0], in[1], height, block, width, block};
  blocks.perm = {0, 3, 5, 1, 2, 4};
  blocks.result = {in[0], pool.mul(in[1], pool.mul(block, block)), height, width};
  return blocks;
}

template <BlockView (*view)(const NodeView&)>
void infer_blocks(InferContext& context) {
  const BlockView blocks = view(context);
  ir::ExprPool& pool = context.pool();
  context.require_equal(product_of(pool, context.shape(0)), product_of(pool, blocks.split),
                        "blocksize does not divide the input");
  context.set(0, context.dtype(0), blocks.result);
}

template <BlockView (*view)(const NodeView&)>
ir::Expr lower_blocks(LowerContext& context) {
  const BlockView blocks = view(context);
  Shape permuted;
  for (int axis : blocks.perm) permuted.push_back(blocks.split[axis]);
  const auto at = reshape_index(context.pool(), blocks.result, permuted, context.index());
  std::vector<ir::Expr> split(at.size());
  for (size_t i = 0; i < at.size(); ++i) split[blocks.perm[i]] = at[i];
  return context.read(0, reshape_index(context.pool(), blocks.split, context.shape(0), split));
}

constexpr OpDef kOps[] = {
    {"Reshape", "", 5, infer_reshape, lower_same_order},
    {"Flatten", "", 1, infer_flatten, lower_same_order},
    {"Squeeze", "", 1, infer_squeeze, lower_same_order},
    {"Unsqueeze", "", 1, infer_unsqueeze, lower_same_order},
    {"Transpose", "", 1, infer_transpose, lower_transpose},
    {"DepthToSpace", "", 1, infer_blocks<depth_to_space_view>, lower_blocks<depth_to_space_view>},
    {"SpaceToDepth", "", 1, infer_blocks<space_to_depth_view>, lower_blocks<space_to_depth_view>},
};

}  // namespace

std::span<const OpDef> reshape_ops() { return kOps; }

}  // namespace redfuser::ops
