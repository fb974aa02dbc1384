#include "cpu/tile/interval.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "cpu/tile/specialize.h"
#include "ir/scalars/integers.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kUnknown = int64_t{1} << 62;
constexpr Interval kAnything{-kUnknown, kUnknown};

int64_t clamped(__int128 x) {
  return static_cast<int64_t>(std::clamp<__int128>(x, -kUnknown, kUnknown));
}

Interval sum(Interval a, Interval b) {
  const bool low = a.low <= -kUnknown || b.low <= -kUnknown;
  const bool high = a.high >= kUnknown || b.high >= kUnknown;
  return {low ? -kUnknown : clamped(static_cast<__int128>(a.low) + b.low),
          high ? kUnknown : clamped(static_cast<__int128>(a.high) + b.high)};
}

Interval product(Interval a, Interval b) {
  const __int128 corners[] = {
      static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
      static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamped(*std::min_element(corners, corners + 4)),
          clamped(*std::max_element(corners, corners + 4))};
}

Interval negated(Interval a) {
  return {clamped(-static_cast<__int128>(a.high)), clamped(-static_cast<__int128>(a.low))};
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

Interval storage_interval(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (is_low_bit_float(dtype)) return {0, (int64_t{1} << bits_of(dtype)) - 1};
  if (!is_integer(dtype) || bits_of(dtype) == 64) return kAnything;
  return {ir::lowest_word(dtype), ir::highest_word(dtype)};
}

bool within(Interval inner, Interval outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

// An interval without a look at more than the operand of a cast.
Interval shallow_interval(ir::Expr expr) {
  if (expr->is_constant() && !is_float(expr->dtype)) return {expr->integer, expr->integer};
  const Interval storage = storage_interval(expr->dtype);
  if (expr->op != ir::ExprOp::Cast || is_float(expr->args[0]->dtype)) return storage;
  const Interval source = storage_interval(expr->args[0]->dtype);
  return within(source, storage) ? source : storage;
}

// The exact result of a sum or product, as a word holds it.
Interval as_word(Interval exact) {
  const bool unknown = exact.low <= -kUnknown || exact.high >= kUnknown;
  return unknown ? kAnything : exact;
}

// The rules of ir/interval.h in numbers.
struct Operands {
  std::array<Interval, 3> of;

  int64_t low(size_t i) const { return of[i].low; }
  int64_t high(size_t i) const { return of[i].high; }
  static int64_t least(int64_t x, int64_t y) { return std::min(x, y); }
  static int64_t greatest(int64_t x, int64_t y) { return std::max(x, y); }
  static int64_t zero() { return 0; }
  static int64_t unknown_low() { return kAnything.low; }
  static int64_t unknown_high() { return kAnything.high; }
  bool positive(size_t i) const { return of[i].low > 0; }
  int64_t low_quotient() const {
    const Interval a = of[0], d = of[1];
    return a.low <= -kUnknown ? a.low : floor_div(a.low, a.low < 0 ? d.low : d.high);
  }
  int64_t high_quotient() const {
    const Interval a = of[0], d = of[1];
    return a.high >= kUnknown ? a.high : floor_div(a.high, a.high < 0 ? d.high : d.low);
  }
  int64_t remainder_below(int64_t divisor) const {
    return of[0].low >= 0 ? std::min(of[0].high, divisor - 1) : divisor - 1;
  }
};

// Expressions share their parts: the interval of each is found once.
class Intervals {
 public:
  explicit Intervals(const AxisIntervals& axes) : axes_(axes) {}

  Interval of(ir::Expr expr) {
    if (expr->args.size() < 2) return within_type(expr);
    const auto known = known_.find(expr);
    if (known != known_.end()) return known->second;
    return known_[expr] = within_type(expr);
  }

 private:
  Interval within_type(ir::Expr expr) {
    const Interval exact = this->exact(expr);
    if (!is_integer(expr->dtype)) return exact;
    const Interval storage = storage_interval(expr->dtype);
    // Words of uint64 are ordered otherwise than bounds are.
    const bool ordered = expr->dtype != DType::UInt64 || expr->op == ir::ExprOp::Cast;
    if (!ordered || (expr->dtype == DType::UInt64 && exact.low < 0)) return storage;
    return within(exact, storage) ? exact : storage;
  }

  // Before wrapping.
  Interval exact(ir::Expr expr) {
    auto arg = [&](size_t i) { return of(expr->args[i]); };
    switch (expr->op) {
      case ir::ExprOp::Constant:
        return is_float(expr->dtype) ? kAnything : Interval{expr->integer, expr->integer};
      case ir::ExprOp::Axis:
        return axes_(expr);
      case ir::ExprOp::Add:
      case ir::ExprOp::Mul: {
        Interval total = arg(0);
        for (size_t i = 1; i < expr->args.size(); ++i) {
          total = expr->op == ir::ExprOp::Add ? sum(total, arg(i)) : product(total, arg(i));
        }
        return is_integer(expr->dtype) ? as_word(total) : kAnything;
      }
      case ir::ExprOp::Sub:
        return is_integer(expr->dtype) ? as_word(sum(arg(0), negated(arg(1)))) : kAnything;
      case ir::ExprOp::Cast: {
        const bool words = is_integer(expr->args[0]->dtype) && is_integer(expr->dtype);
        return words ? arg(0) : storage_interval(expr->dtype);
      }
      default:
        if (has_interval_rule(expr->op)) return by_rule(expr);
        return is_float(expr->dtype) ? kAnything : storage_interval(expr->dtype);
    }
  }

  Interval by_rule(ir::Expr expr) {
    Operands operands{{kAnything, kAnything, kAnything}};
    const size_t first = expr->op == ir::ExprOp::Select ? 1 : 0;
    for (size_t i = first; i < expr->args.size(); ++i) operands.of[i] = of(expr->args[i]);
    return {low_bound(expr->op, operands), high_bound(expr->op, operands)};
  }

  const AxisIntervals& axes_;
  std::unordered_map<ir::Expr, Interval> known_;
};

}  // namespace

Interval interval_of(ir::Expr expr) {
  return interval_of(expr, [](ir::Expr axis) {
    return Interval{0, std::max<int64_t>(extent_of(axis) - 1, 0)};
  });
}

Interval interval_of(ir::Expr expr, const AxisIntervals& axes) { return Intervals(axes).of(expr); }

bool may_overflow(ir::Expr expr) {
  const Interval storage = storage_interval(expr->dtype);
  if (expr->op == ir::ExprOp::Cast) return !within(interval_of(expr->args[0]), storage);
  Interval exact = shallow_interval(expr->args[0]);
  for (size_t i = 1; i < expr->args.size(); ++i) {
    const Interval next = shallow_interval(expr->args[i]);
    switch (expr->op) {
      case ir::ExprOp::Add:
        exact = sum(exact, next);
        break;
      case ir::ExprOp::Sub:
        exact = sum(exact, negated(next));
        break;
      case ir::ExprOp::Mul:
        exact = product(exact, next);
        break;
      default:
        return true;
    }
  }
  return expr->args.size() == 1 || !within(exact, storage);
}

}  // namespace redfuser::cpu
