#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser {
namespace {

// One sliced dimension: elements start, start + step, ... ; `size` of them.
struct Range {
  int axis;
  int64_t step;
  Expr start, size;
};

// Exporters write "to the end" as the largest integer of the time.
constexpr int64_t kEnd = (int64_t{1} << 31) - 1;

bool is_far(Expr position, bool positive) {
  const auto at = constant_of(position);
  return at && (positive ? *at >= kEnd : *at <= -kEnd);
}

Expr limit_above(ExprPool& pool, Expr x, Expr high) { return pool.make(ExprOp::Min, {x, high}); }

// Position `x` of a dimension of `size` elements, limited to [low, size + low]; `low` is 0 for
// steps forward and -1 for steps backward.
Expr limited(ExprPool& pool, Expr x, Expr size, int64_t low) {
  Expr high = pool.add(size, pool.integer(low));
  if (is_far(x, true)) return high;
  if (is_far(x, false)) return pool.integer(low);
  if (low == 0 && x->is_constant(0)) return x;
  x = limit_above(pool, from_end(pool, x, size), high);
  if (proved_nonnegative(x)) return x;
  return pool.select(less(pool, x, pool.integer(low)), pool.integer(low), x);
}

Range range_of(ExprPool& pool, int axis, int64_t step, Expr start, Expr end, Expr size) {
  if (step > 0) {
    start = limited(pool, start, size, 0);
    Expr span = at_least_zero(pool, pool.sub(limited(pool, end, size, 0), start));
    return {axis, step, start, ceil_div(pool, span, pool.integer(step))};
  }
  start = limited(pool, start, size, -1);
  Expr span = at_least_zero(pool, pool.sub(start, limited(pool, end, size, -1)));
  return {
      axis, step, start,
      ceil_div(pool, span, pool.integer(-std::max(step, -std::numeric_limits<int64_t>::max())))};
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
    result.push_back(range_of(context.pool(), axes[i], steps[i], (*starts)[i], (*ends)[i],
                              context.shape(0)[axes[i]]));
  }
  return result;
}

void infer_slice(InferContext& context) {
  Shape shape = context.shape(0);
  for (const Range& range : ranges(context)) shape[range.axis] = range.size;
  context.set(0, context.dtype(0), std::move(shape));
}

Expr lower_slice(LowerContext& context) {
  ExprPool& pool = context.pool();
  std::vector<Expr> index(context.index().begin(), context.index().end());
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

}  // namespace redfuser
