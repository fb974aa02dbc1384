#include "ops/opaque/signal_elements.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/arguments.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

struct Complex {
  ir::Expr real, imaginary;
};

// The real or imaginary part (0 or 1) of Σ over t of point(t)·e^(-2πi·bin·t/length); the sign of
// the exponent is plus where `inverse`. The product of bin and t is reduced to one turn while it is
// an integer.
template <typename Point>
ir::Expr transformed(ir::ExprPool& pool, ir::Expr t, ir::Expr length, ir::Expr bin, ir::Expr part,
                     bool inverse, DType wide, const Point& point) {
  ir::Expr turn =
      pool.div(pool.cast(wide, pool.floormod(pool.mul(bin, t), length)), pool.cast(wide, length));
  ir::Expr angle = pool.mul(turn, pool.number((inverse ? 2 : -2) * std::numbers::pi, wide));
  ir::Expr cosine = pool.make(ir::ExprOp::Cos, {angle}), sine = pool.make(ir::ExprOp::Sin, {angle});
  const Complex x = point(t);
  ir::Expr real = pool.mul(x.real, cosine), imaginary = pool.mul(x.real, sine);
  if (x.imaginary != nullptr) {
    real = pool.sub(real, pool.mul(x.imaginary, sine));
    imaginary = pool.add(imaginary, pool.mul(x.imaginary, cosine));
  }
  ir::Expr term = pool.select(equal(pool, part, pool.integer(0)), real, imaginary);
  return pool.reduce(ir::Reduction::Sum, t, term);
}

// The only element of an input, as a number where it is known.
ir::Expr whole_argument(const LowerContext& context, int input) {
  const auto known = context.constant_integers(input);
  if (known && known->size() == 1) return context.pool().integer(known->front());
  return context.pool().cast(DType::Int64, only_element(context, input));
}

// 1 for real numbers, 2 for pairs of real and imaginary part.
int64_t parts_of(const NodeView& view, ir::Expr size) {
  if (size->is_constant(1) || size->is_constant(2)) return size->integer;
  view.fail("the last dimension must be 1 or 2");
}

// The determinant of the rows from `row` on and these columns.
ir::Expr minor(LowerContext& context, int64_t row, const std::vector<int64_t>& columns,
               DType wide) {
  ir::ExprPool& pool = context.pool();
  if (columns.empty()) return pool.number(1, wide);
  ir::Expr sum = nullptr;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<ir::Expr> index(context.index().begin(), context.index().end());
    index.push_back(pool.integer(row));
    index.push_back(pool.integer(columns[i]));
    std::vector<int64_t> rest = columns;
    rest.erase(rest.begin() + static_cast<long>(i));
    ir::Expr term = pool.mul(pool.cast(wide, context.read(0, std::move(index))),
                             minor(context, row + 1, rest, wide));
    sum = sum == nullptr ? term : i % 2 == 0 ? pool.add(sum, term) : pool.sub(sum, term);
  }
  return sum;
}

}  // namespace

int dft_axis(const NodeView& context) {
  const int rank = context.rank(0);
  int64_t axis = context.opset() < 20 ? context.integer("axis", 1) : -2;
  if (context.has_input(2)) {
    const auto given = context.constant_integers(2);
    if (!given || given->size() != 1) context.fail_unknown("the axis is known only at run time");
    axis = given->front();
  }
  const int result = context.axis(axis, rank);
  if (result == rank - 1) context.fail("the axis is that of the real and imaginary parts");
  return result;
}

// Points beyond the input are 0, but the other half of a real signal's spectrum, the input where
// the result is real, is the conjugate of the first.
ir::Expr element_of_dft(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto axis = static_cast<size_t>(dft_axis(context));
  const bool inverse = context.integer("inverse", 0) != 0;
  const bool real_result = inverse && context.integer("onesided", 0) != 0;
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  ir::Expr given = context.shape(0)[axis], length = given;
  if (real_result) length = pool.mul(pool.integer(2), pool.sub(given, pool.integer(1)));
  if (context.has_input(1)) length = whole_argument(context, 1);
  const int64_t parts = parts_of(context, context.shape(0).back());
  const auto point = [&](ir::Expr t) -> Complex {
    ir::Expr known = less(pool, t, given), at = t;
    if (real_result) at = pool.select(known, t, pool.sub(length, t));
    ir::Expr inside = less(pool, at, given);
    std::vector<ir::Expr> index(context.index().begin(), context.index().end());
    index[axis] = clamp_index(pool, at, given);
    const auto read = [&](int64_t part) {
      index.back() = pool.integer(part);
      return pool.select(inside, pool.cast(wide, context.read(0, index)), pool.number(0, wide));
    };
    if (parts == 1) return {read(0), nullptr};
    ir::Expr imaginary = read(1);
    if (real_result) {
      imaginary = pool.select(known, imaginary, pool.make(ir::ExprOp::Neg, {imaginary}));
    }
    return {read(0), imaginary};
  };
  ir::Expr t = context.loop_axis(0, length);
  ir::Expr sum = transformed(pool, t, length, context.index()[axis], context.index().back(),
                             inverse, wide, point);
  if (inverse) sum = pool.div(sum, pool.cast(wide, length));
  return pool.cast(dtype, sum);
}

// [batch, frame, bin, part] of the frames of a signal, each times the window.
ir::Expr element_of_stft(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto out = context.index();
  const DType dtype = context.dtype(0), wide = computing_type(dtype);
  const bool pairs = context.rank(0) > 2;
  const int64_t parts = pairs ? parts_of(context, context.shape(0)[2]) : 1;
  ir::Expr step = whole_argument(context, 1);
  ir::Expr length = context.has_input(3) ? whole_argument(context, 3) : context.shape(2)[0];
  const auto point = [&](ir::Expr t) -> Complex {
    ir::Expr at = pool.add(pool.mul(out[1], step), t);
    const auto read = [&](int64_t part) {
      std::vector<ir::Expr> index = {out[0], clamp_index(pool, at, context.shape(0)[1])};
      if (pairs) index.push_back(pool.integer(part));
      ir::Expr x = pool.cast(wide, context.read(0, std::move(index)));
      if (!context.has_input(2)) return x;
      ir::Expr place = clamp_index(pool, t, context.shape(2)[0]);
      return pool.mul(x, pool.cast(wide, context.read(2, {place})));
    };
    return {read(0), parts == 2 ? read(1) : nullptr};
  };
  ir::Expr t = context.loop_axis(0, length);
  return pool.cast(dtype, transformed(pool, t, length, out[2], out[3], false, wide, point));
}

ir::Expr element_of_det(LowerContext& context) {
  constexpr int64_t kMostRows = 4;
  const auto rows = constant_of(context.shape(0).back());
  if (!rows || *rows > kMostRows) return nullptr;
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < *rows; ++i) columns.push_back(i);
  const DType dtype = context.dtype(0);
  return context.pool().cast(dtype, minor(context, 0, columns, computing_type(dtype)));
}

}  // namespace redfuser::ops
