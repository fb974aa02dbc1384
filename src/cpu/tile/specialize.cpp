#include "cpu/tile/specialize.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/integer_operations.h"
#include "ir/polynomial.h"

namespace redfuser::cpu {

ir::Expr Specializer::copy(ir::Expr expr) {
  auto found = memo_.find(expr);
  if (found != memo_.end()) return found->second;
  ir::Expr result = build(expr);
  memo_.emplace(expr, result);
  return result;
}

ir::Expr Specializer::build_axis(ir::Expr axis) {
  const int64_t extent = evaluate_size(axis->args[0], symbols_);
  if (extent == 1) return to_.integer(0);
  return to_.axis("a", to_.integer(extent));
}

ir::Expr Specializer::build(ir::Expr expr) {
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return is_float(expr->dtype) ? to_.number(expr->number, expr->dtype)
                                   : to_.number_int(expr->integer, expr->dtype);
    case ir::ExprOp::Symbol:
      return to_.integer(evaluate_size(expr, symbols_));
    case ir::ExprOp::Axis:
      return build_axis(expr);
    case ir::ExprOp::Leaf:
      return to_.leaf(expr->leaf_kind, expr->integer, expr->dtype);
    default:
      break;
  }
  if (expr->op == ir::ExprOp::Reduce) {
    // A bound axis is shared by reductions of one nesting depth, so it always stays an axis here.
    ir::Expr axis = expr->args[0];
    auto found = memo_.find(axis);
    if (found == memo_.end()) {
      const int64_t extent = evaluate_size(axis->args[0], symbols_);
      found = memo_.emplace(axis, to_.axis("r", to_.integer(extent))).first;
    }
    ir::Expr bound = found->second;
    ir::Expr rank = expr->args.size() > 2 ? copy(expr->args[2]) : nullptr;
    return to_.reduce(expr->reduction, bound, copy(expr->args[1]), rank, expr->integer != 0);
  }
  std::vector<ir::Expr> args;
  for (ir::Expr arg : expr->args) args.push_back(copy(arg));
  if (expr->op == ir::ExprOp::Read) return to_.read(expr->integer, expr->dtype, std::move(args));
  if (expr->op == ir::ExprOp::Cast) return to_.cast(expr->dtype, args[0]);
  return to_.make(expr->op, std::move(args));
}

std::vector<ir::Expr> Specializer::copy_axes(std::span<const ir::Expr> axes) {
  std::vector<ir::Expr> result;
  for (ir::Expr axis : axes) {
    ir::Expr copied = copy(axis);
    if (copied->op == ir::ExprOp::Axis) result.push_back(copied);
  }
  return result;
}

std::vector<int64_t> symbols_of(const ir::Graph& graph, std::span<const ir::Expr> expressions,
                                std::span<const ir::ValueId> values) {
  std::set<int64_t> symbols;
  std::unordered_set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr expr) {
    if (!seen.insert(expr).second) return;
    if (expr->op == ir::ExprOp::Symbol) symbols.insert(expr->integer);
    for (ir::Expr arg : expr->args) go(arg);
    if (expr->op == ir::ExprOp::Read && expr->integer >= 0) {
      for (ir::Expr size : graph.values[static_cast<size_t>(expr->integer)].shape) go(size);
    }
  };
  for (ir::Expr expr : expressions) {
    if (expr) go(expr);
  }
  for (ir::ValueId value : values) {
    for (ir::Expr size : graph.values[static_cast<size_t>(value)].shape) go(size);
  }
  return {symbols.begin(), symbols.end()};
}

int64_t constant_of(ir::Expr expr) {
  RF_CHECK(expr->is_constant(), "a specialized size is no constant");
  return expr->integer;
}

int64_t extent_of(ir::Expr axis) { return constant_of(axis->args[0]); }

int64_t extent_of(std::span<const ir::Expr> axes) {
  int64_t extent = 1;
  for (ir::Expr axis : axes) extent *= extent_of(axis);
  return extent;
}

namespace {

// The divisors d of ⌊axis/d⌋ and axis mod d in the expressions, and in them the moduli m of
// ⌊axis/d⌋ mod m (as d·m), sorted; empty unless each divides the next and the extent.
std::vector<int64_t> divisors_of(ir::Expr axis, const std::vector<ir::Expr*>& expressions) {
  std::set<int64_t> divisors;
  for (ir::Expr* expr : expressions) {
    visit(*expr, [&](ir::Expr node) {
      if (node->op != ir::ExprOp::FloorDiv && node->op != ir::ExprOp::FloorMod) return;
      if (!node->args[1]->is_constant() || node->args[1]->integer <= 1) return;
      ir::Expr inner = node->args[0];
      if (inner == axis) divisors.insert(node->args[1]->integer);
      if (inner->op == ir::ExprOp::FloorDiv && inner->args[0] == axis &&
          inner->args[1]->is_constant())
        divisors.insert(inner->args[1]->integer * node->args[1]->integer);
    });
  }
  const int64_t extent = extent_of(axis);
  int64_t previous = 1;
  std::vector<int64_t> chain;
  for (int64_t divisor : divisors) {
    if (divisor >= extent || divisor % previous != 0 || extent % divisor != 0) continue;
    chain.push_back(divisor);
    previous = divisor;
  }
  return chain;
}

}  // namespace

void split_axes(ir::ExprPool& pool, std::vector<ir::Expr>& axes,
                const std::vector<ir::Expr*>& expressions) {
  std::vector<ir::Expr> result;
  for (ir::Expr axis : axes) {
    const std::vector<int64_t> divisors = divisors_of(axis, expressions);
    if (divisors.empty()) {
      result.push_back(axis);
      continue;
    }
    ir::Expr whole = pool.integer(0);
    int64_t outer = extent_of(axis);
    for (size_t i = divisors.size() + 1; i-- > 0;) {
      const int64_t inner = i > 0 ? divisors[i - 1] : 1;
      ir::Expr part = pool.axis("s", pool.integer(outer / inner));
      result.push_back(part);
      whole = pool.add(whole, pool.mul(part, pool.integer(inner)));
      outer = inner;
    }
    for (ir::Expr* expr : expressions) *expr = pool.substitute(*expr, {{axis, whole}});
  }
  axes = std::move(result);
}

namespace {

constexpr int64_t kUnknown = int64_t{1} << 62;

int64_t clamped(__int128 x) {
  return static_cast<int64_t>(std::clamp<__int128>(x, -kUnknown, kUnknown));
}

Range sum(Range a, Range b) {
  const bool low = a.low <= -kUnknown || b.low <= -kUnknown;
  const bool high = a.high >= kUnknown || b.high >= kUnknown;
  return {low ? -kUnknown : clamped(static_cast<__int128>(a.low) + b.low),
          high ? kUnknown : clamped(static_cast<__int128>(a.high) + b.high)};
}

Range product(Range a, Range b) {
  const __int128 corners[] = {
      static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
      static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamped(*std::min_element(corners, corners + 4)),
          clamped(*std::max_element(corners, corners + 4))};
}

Range negated(Range a) {
  return {clamped(-static_cast<__int128>(a.high)), clamped(-static_cast<__int128>(a.low))};
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

Range storage_range(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (is_low_bit_float(dtype)) return {0, (int64_t{1} << bits_of(dtype)) - 1};
  if (!is_integer(dtype) || bits_of(dtype) == 64) return {-kUnknown, kUnknown};
  return {ir::lowest_word(dtype), ir::highest_word(dtype)};
}

bool within(Range inner, Range outer) { return inner.low >= outer.low && inner.high <= outer.high; }

// A range without a look at more than the operand of a cast.
Range shallow_range(ir::Expr expr) {
  if (expr->is_constant() && !is_float(expr->dtype)) return {expr->integer, expr->integer};
  const Range storage = storage_range(expr->dtype);
  if (expr->op != ir::ExprOp::Cast || is_float(expr->args[0]->dtype)) return storage;
  const Range source = storage_range(expr->args[0]->dtype);
  return within(source, storage) ? source : storage;
}

// The exact result of a sum or product, as a word holds it.
Range as_word(Range exact) {
  const bool unknown = exact.low <= -kUnknown || exact.high >= kUnknown;
  return unknown ? Range{-kUnknown, kUnknown} : exact;
}

// Expressions share their parts: the range of each is found once.
class Ranges {
 public:
  explicit Ranges(const AxisRanges& axes) : axes_(axes) {}

  Range of(ir::Expr expr) {
    if (expr->args.size() < 2) return within_type(expr);
    const auto known = known_.find(expr);
    if (known != known_.end()) return known->second;
    return known_[expr] = within_type(expr);
  }

 private:
  Range within_type(ir::Expr expr);
  // Bounds before wrapping.
  Range exact(ir::Expr expr);

  const AxisRanges& axes_;
  std::unordered_map<ir::Expr, Range> known_;
};

}  // namespace

Range range_of(ir::Expr expr) {
  return range_of(expr, [](ir::Expr axis) {
    return Range{0, std::max<int64_t>(extent_of(axis) - 1, 0)};
  });
}

Range range_of(ir::Expr expr, const AxisRanges& axes) { return Ranges(axes).of(expr); }

namespace {

Range Ranges::within_type(ir::Expr expr) {
  const Range exact = this->exact(expr);
  if (!is_integer(expr->dtype)) return exact;
  const Range storage = storage_range(expr->dtype);
  // Words of uint64 are ordered otherwise than bounds are.
  const bool ordered = expr->dtype != DType::UInt64 || expr->op == ir::ExprOp::Cast;
  if (!ordered || (expr->dtype == DType::UInt64 && exact.low < 0)) return storage;
  return within(exact, storage) ? exact : storage;
}

}  // namespace

bool may_overflow(ir::Expr expr) {
  const Range storage = storage_range(expr->dtype);
  if (expr->op == ir::ExprOp::Cast) return !within(range_of(expr->args[0]), storage);
  Range exact = shallow_range(expr->args[0]);
  for (size_t i = 1; i < expr->args.size(); ++i) {
    const Range next = shallow_range(expr->args[i]);
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

namespace {

Range Ranges::exact(ir::Expr expr) {
  const Range unknown{-kUnknown, kUnknown};
  auto arg = [&](size_t i) { return of(expr->args[i]); };
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return is_float(expr->dtype) ? unknown : Range{expr->integer, expr->integer};
    case ir::ExprOp::Axis:
      return axes_(expr);
    case ir::ExprOp::Add: {
      Range total = arg(0);
      for (size_t i = 1; i < expr->args.size(); ++i) total = sum(total, arg(i));
      return is_integer(expr->dtype) ? as_word(total) : unknown;
    }
    case ir::ExprOp::Mul: {
      Range total = arg(0);
      for (size_t i = 1; i < expr->args.size(); ++i) total = product(total, arg(i));
      return is_integer(expr->dtype) ? as_word(total) : unknown;
    }
    case ir::ExprOp::Sub:
      return is_integer(expr->dtype) ? as_word(sum(arg(0), negated(arg(1)))) : unknown;
    case ir::ExprOp::FloorDiv: {
      const Range a = arg(0), b = arg(1);
      if (b.low <= 0 || b.low != b.high) return a.low >= 0 && b.low > 0 ? a : unknown;
      return {floor_div(a.low, b.low), floor_div(a.high, b.low)};
    }
    case ir::ExprOp::FloorMod: {
      const Range a = arg(0), b = arg(1);
      if (b.low <= 0) return unknown;
      return {0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
    }
    case ir::ExprOp::Min: {
      const Range a = arg(0), b = arg(1);
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    case ir::ExprOp::Max: {
      const Range a = arg(0), b = arg(1);
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    case ir::ExprOp::Select: {
      const Range a = arg(1), b = arg(2);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    case ir::ExprOp::Cast: {
      const bool words = is_integer(expr->args[0]->dtype) && is_integer(expr->dtype);
      return words ? arg(0) : storage_range(expr->dtype);
    }
    default:
      return is_float(expr->dtype) ? unknown : storage_range(expr->dtype);
  }
}

}  // namespace

}  // namespace redfuser::cpu
