#include "ops/image/resize_lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/image/resize.h"

namespace redfuser::ops {
namespace {

constexpr int kMaxTaps = 16;              // reads of an output element
constexpr double kLargestTerm = 1 << 24;  // of a scale as a quotient of integers
enum class Coordinates { HalfPixel, Asymmetric, AlignCorners, PytorchHalfPixel, ForNearest };

std::string mode_of(const NodeView& view) {
  const std::string mode = view.text("mode", "nearest");
  return mode == "bilinear" ? "linear" : mode;
}

std::optional<Coordinates> coordinates_of(const NodeView& view) {
  if (view.opset() < 11 || view.node().op == "Upsample") return Coordinates::Asymmetric;
  const std::string name = view.text("coordinate_transformation_mode", "half_pixel");
  if (name == "half_pixel") return Coordinates::HalfPixel;
  if (name == "asymmetric") return Coordinates::Asymmetric;
  if (name == "align_corners") return Coordinates::AlignCorners;
  if (name == "pytorch_half_pixel") return Coordinates::PytorchHalfPixel;
  if (name == "tf_half_pixel_for_nn") return Coordinates::ForNearest;
  return std::nullopt;
}

std::string rounding_of(const NodeView& view) {
  const bool early = view.opset() < 11 || view.node().op == "Upsample";
  const std::string rounding = view.text("nearest_mode", early ? "floor" : "round_prefer_floor");
  return rounding == "simple" ? "floor" : rounding;
}

// The output's size over the input's, before rounding to an integer: a quotient of integers.
struct Scale {
  ir::Expr above, below;
};

Scale reduced(ir::ExprPool& pool, int64_t above, int64_t below) {
  const int64_t common = std::gcd(above, below);
  return {pool.integer(above / common), pool.integer(below / common)};
}

// A float is an integer over a power of two.
std::optional<Scale> quotient(ir::ExprPool& pool, ir::Expr scale) {
  if (!scale->is_constant()) return std::nullopt;
  double above = scale->number, below = 1;
  if (!(above > 0)) return std::nullopt;
  while (above != std::floor(above) && below < kLargestTerm) above *= 2, below *= 2;
  if (above != std::floor(above) || above > kLargestTerm) return std::nullopt;
  return reduced(pool, static_cast<int64_t>(above), static_cast<int64_t>(below));
}

std::optional<Scale> quotient(ir::ExprPool& pool, ir::Expr output, ir::Expr input) {
  const auto to = constant_of(output), from = constant_of(input);
  if (from == 0 || to.value_or(1) <= 0) return std::nullopt;
  if (to && from) return reduced(pool, *to, *from);
  ir::Expr whole = pool.floordiv(output, input);
  if (whole->is_constant() && pool.mul(whole, input) == output)
    return Scale{whole, pool.integer(1)};
  return Scale{output, input};
}

struct ResizedAxis {
  int axis;
  Scale scale;
};

// The axes that change, the last one first; nullopt unless every scale is a known quotient of
// integers.
std::optional<std::vector<ResizedAxis>> scales_of(const NodeView& view, const Shape& shape) {
  const std::vector<int> axes = resized_axes(view);
  const bool by_sizes = resized_by_sizes(view);
  const auto factors = by_sizes ? std::vector<ir::Expr>(axes.size()) : resize_scales(view);
  if (!factors) return std::nullopt;
  std::vector<ResizedAxis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int d = axes[i];
    const auto scale = by_sizes ? quotient(view.pool(), shape[d], view.shape(0)[d])
                                : quotient(view.pool(), (*factors)[i]);
    if (!scale) return std::nullopt;
    if (scale->above != scale->below) result.push_back({d, *scale});
  }
  std::sort(result.begin(), result.end(),
            [](const ResizedAxis& a, const ResizedAxis& b) { return a.axis > b.axis; });
  return result;
}

// x = numerator / denominator, the latter positive.
struct Position {
  ir::Expr numerator, denominator;
};

// `output` is the requested size, or null if a scale was given: then the output's width is scale *
// input, which need not be an integer. Widths are multiples of 1 / unit.
Position position_of(ir::ExprPool& pool, Coordinates coordinates, const Scale& scale,
                     ir::Expr input, ir::Expr output, ir::Expr o) {
  const auto [above, below] = scale;
  ir::Expr one = pool.integer(1), two = pool.integer(2), odd = pool.add(pool.mul(two, o), one);
  ir::Expr width = output ? output : pool.mul(above, input), unit = output ? one : below;
  switch (coordinates) {
    case Coordinates::Asymmetric:
      return {pool.mul(o, below), above};
    case Coordinates::ForNearest:
      return {pool.mul(odd, below), pool.mul(two, above)};
    case Coordinates::AlignCorners: {
      ir::Expr last = pool.sub(width, unit);
      return {pool.mul(pool.mul(o, pool.sub(input, one)), unit),
              pool.select(less(pool, pool.integer(0), last), last, one)};
    }
    default: {
      ir::Expr x = pool.sub(pool.mul(odd, below), above);
      if (coordinates == Coordinates::PytorchHalfPixel) {
        x = pool.select(equal(pool, width, unit), pool.mul(pool.integer(-1), above), x);
      }
      return {x, pool.mul(two, above)};
    }
  }
}

// floor((n + shift) / d) for the rounding of n / d.
ir::Expr nearest(ir::ExprPool& pool, Position x, const std::string& rounding) {
  auto [n, d] = x;
  ir::Expr two = pool.integer(2), one = pool.integer(1);
  if (rounding == "floor") return pool.floordiv(n, d);
  if (rounding == "ceil") return pool.floordiv(pool.sub(pool.add(n, d), one), d);
  ir::Expr twice = pool.add(pool.mul(two, n), d);
  if (rounding == "round_prefer_floor") twice = pool.sub(twice, one);
  return pool.floordiv(twice, pool.mul(two, d));
}

// Keys' cubic convolution at distance t of the inner and the outer neighbours.
ir::Expr inner_weight(ir::ExprPool& pool, ir::Expr t, double a) {
  auto number = [&](double value) { return pool.number(value, t->dtype); };
  ir::Expr sum = pool.sub(pool.mul(number(a + 2), t), number(a + 3));
  return pool.add(pool.mul(pool.mul(sum, t), t), number(1));
}
ir::Expr outer_weight(ir::ExprPool& pool, ir::Expr t, double a) {
  auto number = [&](double value) { return pool.number(value, t->dtype); };
  ir::Expr sum = pool.sub(pool.mul(number(a), t), number(5 * a));
  sum = pool.add(pool.mul(sum, t), number(8 * a));
  return pool.sub(pool.mul(sum, t), number(4 * a));
}

// Weights of the taps from `first` on, for the fraction `t` of the position.
std::vector<ir::Expr> weights_of(const NodeView& view, ir::Expr t) {
  ir::ExprPool& pool = view.pool();
  ir::Expr one = pool.number(1, t->dtype), rest = pool.sub(one, t);
  if (mode_of(view) == "linear") return {rest, t};
  const double a = view.real("cubic_coeff_a", -0.75);
  return {outer_weight(pool, pool.add(t, one), a), inner_weight(pool, t, a),
          inner_weight(pool, rest, a), outer_weight(pool, pool.add(rest, one), a)};
}

class Interpolation {
 public:
  Interpolation(LowerContext& context, std::vector<ResizedAxis> axes)
      : context_(context),
        pool_(context.pool()),
        axes_(std::move(axes)),
        wide_(context.dtype(0) == DType::Float64 ? DType::Float64 : DType::Float32) {}

  // The element at `index` of the input resized along the first `count` axes.
  ir::Expr value(size_t count, std::vector<ir::Expr> index) {
    if (count == 0) return pool_.cast(wide_, context_.read(0, std::move(index)));
    const int d = axes_[count - 1].axis;
    const Position x = position(axes_[count - 1], index[d]);
    ir::Expr base = pool_.floordiv(x.numerator, x.denominator);
    ir::Expr part = pool_.div(pool_.cast(wide_, pool_.floormod(x.numerator, x.denominator)),
                              pool_.cast(wide_, x.denominator));
    const std::vector<ir::Expr> weights = weights_of(context_, part);
    const auto before = static_cast<int64_t>(weights.size()) / 2 - 1;
    ir::Expr sum = nullptr, exact = nullptr;
    for (size_t t = 0; t < weights.size(); ++t) {
      const int64_t offset = static_cast<int64_t>(t) - before;
      index[d] = clamp_index(pool_, pool_.add(base, pool_.integer(offset)), context_.shape(0)[d]);
      ir::Expr tap = value(count - 1, index);
      if (offset == 0) exact = tap;
      ir::Expr term = pool_.mul(weights[t], tap);
      sum = sum ? pool_.add(sum, term) : term;
    }
    // A neighbour of weight 0 is ignored, even if it is infinite.
    return pool_.select(equal(pool_, part, pool_.number(0, wide_)), exact, sum);
  }

  ir::Expr nearest_value(std::vector<ir::Expr> index) {
    for (const ResizedAxis& axis : axes_) {
      ir::Expr at = nearest(pool_, position(axis, index[axis.axis]), rounding_of(context_));
      index[axis.axis] = clamp_index(pool_, at, context_.shape(0)[axis.axis]);
    }
    return context_.read(0, std::move(index));
  }

 private:
  Position position(const ResizedAxis& axis, ir::Expr o) const {
    ir::Expr output = resized_by_sizes(context_) ? context_.result().shape[axis.axis] : nullptr;
    return position_of(pool_, *coordinates_of(context_), axis.scale, context_.shape(0)[axis.axis],
                       output, o);
  }

  LowerContext& context_;
  ir::ExprPool& pool_;
  std::vector<ResizedAxis> axes_;
  DType wide_;
};

}  // namespace

bool resize_is_expression(const NodeView& view, const Shape& shape) {
  const std::string mode = mode_of(view);
  if (mode != "nearest" && mode != "linear" && mode != "cubic") return false;
  if (mode != "nearest" && !is_float(view.dtype(0))) return false;
  if (view.integer("antialias", 0) != 0 || view.integer("exclude_outside", 0) != 0) return false;
  if (view.text("keep_aspect_ratio_policy", "stretch") != "stretch") return false;
  if (!coordinates_of(view)) return false;
  const std::string rounding = rounding_of(view);
  if (rounding != "floor" && rounding != "ceil" && rounding != "round_prefer_floor" &&
      rounding != "round_prefer_ceil") {
    return false;
  }
  const auto axes = scales_of(view, shape);
  if (!axes) return false;
  const int each = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  return std::pow(each, axes->size()) <= kMaxTaps;
}

ir::Expr lower_resize(LowerContext& context) {
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  Interpolation interpolation(context, *scales_of(context, context.result().shape));
  if (mode_of(context) == "nearest") return interpolation.nearest_value(std::move(index));
  const size_t count = scales_of(context, context.result().shape)->size();
  ir::Expr value = interpolation.value(count, std::move(index));
  return context.pool().cast(context.dtype(0), value);
}

}  // namespace redfuser::ops
