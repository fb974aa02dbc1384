#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

// One sliced dimension: elements start, start + step, ... ; `size` of them.
struct Range {
  int axis;
  int64_t step;
  ir::Expr start, size;
};

// Exporters write the largest integer for "to the end".
constexpr int64_t kEnd = (int64_t{1} << 31) - 1;

bool is_far(ir::Expr position, bool positive) {
  const auto at = constant_of(position);
  return at && (positive ? *at >= kEnd : *at <= -kEnd);
}

// A position of a dimension of `size` elements, limited to [0, size].
ir::Expr limited(ir::ExprPool& pool, ir::Expr x, ir::Expr size) {
  if (is_far(x, true)) return size;
  if (is_far(x, false)) return pool.integer(0);
  return min_of(pool, at_least_zero(pool, from_end(pool, x, size)), size);
}

// Both count from the same end, and `a` <= `b`.
bool in_order(ir::Expr a, ir::Expr b) {
  const auto x = constant_of(a), y = constant_of(b);
  return x && y && *x <= *y && (*x < 0) == (*y < 0);
}

Range forward(ir::ExprPool& pool, int axis, int64_t step, ir::Expr start, ir::Expr end,
              ir::Expr size) {
  ir::Expr first = limited(pool, start, size);
  ir::Expr span = pool.sub(limited(pool, end, size), first);
  if (!in_order(start, end)) span = at_least_zero(pool, span);
  // If the slice has an element, its start is in range.
  if (start->is_constant() && !is_far(start, false)) {
    ir::Expr exact = from_end(pool, start, size);
    if (proved_nonnegative(exact, {false, {size}})) first = exact;
  }
  return {axis, step, first, ceil_div(pool, span, pool.integer(step))};
}

// From a start clamped to [0, size - 1] to an exclusive end clamped to [-1, size - 1].
Range backward(ir::ExprPool& pool, int axis, int64_t step, ir::Expr start, ir::Expr end,
               ir::Expr size) {
  ir::Expr final = pool.sub(size, pool.integer(1));
  auto limited = [&](ir::Expr x, int64_t low) {
    if (is_far(x, true)) return final;
    if (is_far(x, false)) return min_of(pool, pool.integer(low), final);
    x = from_end(pool, x, size);
    if (proved_less_equal(pool, final, x)) return final;
    return min_of(pool, max_of(pool, x, pool.integer(low)), final);
  };
  ir::Expr first = limited(start, 0), span = at_least_zero(pool, pool.sub(first, limited(end, -1)));
  const int64_t stride = -std::max(step, -std::numeric_limits<int64_t>::max());
  return {axis, step, first, ceil_div(pool, span, pool.integer(stride))};
}

template <typename Context>
std::vector<Range> ranges(const Context& context) {
  const auto starts = size_argument(context, "starts", 1);
  const auto ends = size_argument(context, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) {
    context.fail("starts and ends must be lists of one length");
  }
  std::vector<int> all;
  for (size_t i = 0; i < starts->size(); ++i) all.push_back(static_cast<int>(i));
  const auto axes = axes_argument(context, "axes", 3, context.rank(0)).value_or(all);
  const auto steps =
      constant_argument(context, "steps", 4).value_or(std::vector<int64_t>(starts->size(), 1));
  if (axes.size() != starts->size() || steps.size() != starts->size() ||
      static_cast<int>(axes.size()) > context.rank(0)) {
    context.fail("starts, ends, axes and steps differ in length");
  }
  std::vector<Range> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) context.fail("step 0");
    const auto range = steps[i] > 0 ? forward : backward;
    result.push_back(range(context.pool(), axes[i], steps[i], (*starts)[i], (*ends)[i],
                           context.shape(0)[axes[i]]));
  }
  return result;
}

void infer_slice(InferContext& context) {
  Shape shape = context.shape(0);
  for (const Range& range : ranges(context)) shape[range.axis] = range.size;
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_slice(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  for (const Range& range : ranges(context)) {
    index[range.axis] =
        pool.add(range.start, pool.mul(pool.integer(range.step), index[range.axis]));
  }
  return context.read(0, std::move(index));
}

constexpr OpDef kOps[] = {
    {"Slice", "", 1, infer_slice, lower_slice},
};

}  // namespace

std::span<const OpDef> slice_ops() { return kOps; }

}  // namespace redfuser::ops
