// GridSample as an expression: an output element is a weighted sum of the inputs around a point
// read from the grid.
#include <functional>
#include <limits>

#include "base/error.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

enum class Padding { Zeros, Border, Reflection };

Padding padding_of(const NodeView& view) {
  const std::string name = view.text("padding_mode", "zeros");
  if (name == "border") return Padding::Border;
  if (name == "reflection") return Padding::Reflection;
  if (name != "zeros") view.fail(fmt::format("padding_mode \"{}\"", name));
  return Padding::Zeros;
}

// Neighbours of a point along one dimension: 1 (nearest), 2 (linear) or 4 (cubic).
int taps_of(const NodeView& view) {
  const std::string mode = view.text("mode", "linear");
  if (mode == "nearest") return 1;
  if (mode == "linear" || mode == "bilinear") return 2;
  if (mode != "cubic" && mode != "bicubic") view.fail(fmt::format("mode \"{}\"", mode));
  return 4;
}

constexpr int kMaxTaps = 16;  // reads of an output element

// x [N,C,sizes], grid [N,out sizes,dimensions] -> [N,C,out sizes]
void infer_grid_sample(InferContext& context) {
  const int rank = context.rank(0);
  if (rank < 3 || context.rank(1) != rank) context.fail("input and grid must have the same rank");
  context.require_equal(context.shape(1).back(), context.pool().integer(rank - 2),
                        "coordinates of the grid");
  context.require_equal(context.shape(0)[0], context.shape(1)[0], "the batches");
  padding_of(context);
  int taps = 1;
  for (int d = 2; d < rank; ++d) taps = std::min(taps * taps_of(context), kMaxTaps + 1);
  const DType dtype = context.dtype(0), grid = context.dtype(1);
  if (taps > kMaxTaps || !is_float(dtype) || !is_float(grid)) context.choose_opaque();
  Shape shape{context.shape(0)[0], context.shape(0)[1]};
  shape.insert(shape.end(), context.shape(1).begin() + 1, context.shape(1).end() - 1);
  context.set(0, dtype, std::move(shape));
}

// One dimension: from a coordinate in [-1, 1] to elements and weights.
class Line {
 public:
  Line(const NodeView& view, ir::Expr size, DType wide)
      : pool_(view.pool()),
        wide_(wide),
        padding_(padding_of(view)),
        taps_(taps_of(view)),
        size_(size),
        count_(pool_.cast(wide, size)) {
    const bool align = view.integer("align_corners", 0) != 0;
    align_ = align;
    low_ = number(align ? 0 : -0.5);
    high_ = pool_.sub(count_, number(align ? 1 : 0.5));
  }

  struct Tap {
    ir::Expr element, inside, weight;  // inside is null if every position has an element
  };

  std::vector<Tap> taps(ir::Expr coordinate) {
    ir::Expr x = position(coordinate);
    if (taps_ == 1) {
      Tap tap = element(padded(pool_.make(ir::ExprOp::Round, {x})));
      tap.weight = number(1);
      return {tap};
    }
    x = padded(x);
    ir::Expr base = pool_.make(ir::ExprOp::Floor, {x}), part = pool_.sub(x, base);
    std::vector<Tap> result;
    for (int i = 0; i < taps_; ++i) {
      const int offset = i + 1 - taps_ / 2;
      result.push_back(element(pool_.add(base, number(offset))));
      result.back().weight = weight(part, offset);
    }
    return result;
  }

 private:
  ir::Expr number(double value) const { return pool_.number(value, wide_); }
  ir::Expr within(ir::Expr x, ir::Expr low, ir::Expr high) const {
    return pool_.make(ir::ExprOp::Min, {pool_.make(ir::ExprOp::Max, {x, low}), high});
  }
  ir::Expr last() const { return pool_.sub(count_, number(1)); }

  // NaN and coordinates of very large magnitude are points outside.
  ir::Expr position(ir::Expr coordinate) const {
    ir::Expr x = pool_.add(coordinate, number(1));
    x = align_ ? pool_.mul(pool_.div(x, number(2)), last())
               : pool_.div(pool_.sub(pool_.mul(x, count_), number(1)), number(2));
    ir::Expr finite =
        less(pool_, pool_.make(ir::ExprOp::Abs, {x}), number(std::numeric_limits<float>::max()));
    return pool_.select(finite, x, number(padding_ == Padding::Zeros ? -2 : 0));
  }

  // Reflected at the borders until it is inside.
  ir::Expr reflected(ir::Expr x) const {
    ir::Expr span = pool_.sub(high_, low_), zero = number(0);
    ir::Expr below = less(pool_, x, low_), above = less(pool_, high_, x);
    ir::Expr distance = pool_.select(below, pool_.sub(low_, x), pool_.sub(x, high_));
    ir::Expr folds = pool_.make(ir::ExprOp::Floor, {pool_.div(distance, span)});
    ir::Expr rest = pool_.sub(distance, pool_.mul(folds, span));
    ir::Expr half = pool_.mul(folds, number(0.5));
    ir::Expr even = equal(pool_, pool_.make(ir::ExprOp::Floor, {half}), half);
    ir::Expr from_low = pool_.add(low_, rest), from_high = pool_.sub(high_, rest);
    ir::Expr folded =
        pool_.select(pool_.make(ir::ExprOp::Equal, {even, below}), from_low, from_high);
    ir::Expr outside = pool_.make(ir::ExprOp::Or, {below, above});
    return pool_.select(less(pool_, zero, span), pool_.select(outside, folded, x), low_);
  }

  ir::Expr padded(ir::Expr x) const {
    if (padding_ == Padding::Zeros) return x;
    if (padding_ == Padding::Reflection) return reflected(x);
    ir::Expr inside = pool_.make(ir::ExprOp::And, {pool_.make(ir::ExprOp::LessEqual, {low_, x}),
                                                   pool_.make(ir::ExprOp::LessEqual, {x, high_})});
    return pool_.select(inside, x, within(x, number(0), last()));
  }

  // The element at an integer position.
  Tap element(ir::Expr at) const {
    Tap tap{nullptr, nullptr, nullptr};
    if (padding_ == Padding::Reflection) at = toward_zero(reflected(at));
    if (padding_ != Padding::Border) {
      tap.inside = pool_.make(ir::ExprOp::And, {pool_.make(ir::ExprOp::LessEqual, {number(0), at}),
                                                pool_.make(ir::ExprOp::LessEqual, {at, last()})});
    }
    at = pool_.cast(DType::Int64, within(at, number(0), last()));
    tap.element = clamp_index(pool_, at, size_);
    return tap;
  }

  ir::Expr toward_zero(ir::Expr x) const {
    return pool_.select(less(pool_, x, number(0)), pool_.make(ir::ExprOp::Ceil, {x}),
                        pool_.make(ir::ExprOp::Floor, {x}));
  }

  // The weight of the neighbour at `offset` from the floor: linear, or Keys' cubic convolution.
  ir::Expr weight(ir::Expr part, int offset) const {
    if (taps_ == 2) return offset == 0 ? pool_.sub(number(1), part) : part;
    constexpr double a = -0.75;
    ir::Expr d = offset <= 0 ? pool_.add(part, number(-offset)) : pool_.sub(number(offset), part);
    if (offset == 0 || offset == 1) {
      ir::Expr sum = pool_.sub(pool_.mul(number(a + 2), d), number(a + 3));
      return pool_.add(pool_.mul(pool_.mul(sum, d), d), number(1));
    }
    ir::Expr sum =
        pool_.add(pool_.mul(pool_.sub(pool_.mul(number(a), d), number(5 * a)), d), number(8 * a));
    return pool_.sub(pool_.mul(sum, d), number(4 * a));
  }

  ir::ExprPool& pool_;
  DType wide_;
  Padding padding_;
  int taps_;
  bool align_ = false;
  ir::Expr size_, count_;
  ir::Expr low_ = nullptr, high_ = nullptr;
};

ir::Expr lower_grid_sample(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int rank = context.rank(0), dimensions = rank - 2;
  const auto out = context.index();
  const bool wide = context.dtype(0) == DType::Float64 || context.dtype(1) == DType::Float64;
  const DType dtype = wide ? DType::Float64 : DType::Float32;
  std::vector<std::vector<Line::Tap>> taps;
  for (int d = 0; d < dimensions; ++d) {
    // Coordinates are in the order x, y, z: the last dimension first.
    std::vector<ir::Expr> at = {out[0]};
    at.insert(at.end(), out.begin() + 2, out.end());
    at.push_back(pool.integer(dimensions - 1 - d));
    ir::Expr coordinate = pool.cast(dtype, context.read(1, std::move(at)));
    taps.push_back(
        Line(context, context.shape(0)[static_cast<size_t>(d) + 2], dtype).taps(coordinate));
  }
  std::function<ir::Expr(size_t, std::vector<ir::Expr>)> sum = [&](size_t d,
                                                                   std::vector<ir::Expr> index) {
    if (d == taps.size()) return pool.cast(dtype, context.read(0, std::move(index)));
    ir::Expr total = nullptr;
    for (const Line::Tap& tap : taps[d]) {
      std::vector<ir::Expr> next = index;
      next.push_back(tap.element);
      ir::Expr term = sum(d + 1, std::move(next));
      if (taps[d].size() > 1) term = pool.mul(tap.weight, term);
      if (tap.inside) term = pool.select(tap.inside, term, pool.number(0, dtype));
      total = total ? pool.add(total, term) : term;
    }
    return total;
  };
  return pool.cast(context.dtype(0), sum(0, {out[0], out[1]}));
}

constexpr OpDef kOpaque{"GridSample", "", 16, infer_grid_sample, nullptr};
constexpr OpDef kOps[] = {
    {"GridSample", "", 16, infer_grid_sample, lower_grid_sample, false, &kOpaque},
};

}  // namespace

std::span<const OpDef> grid_ops() { return kOps; }

}  // namespace redfuser::ops
