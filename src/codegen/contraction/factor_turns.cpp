#include "codegen/contraction/factor_turns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>

#include "codegen/core/kernel_text.h"
#include "ir/evaluate.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

// The nodes of an operation in an expression.
std::vector<ir::Expr> nodes_of(ir::Expr root, ir::ExprOp op) {
  std::vector<ir::Expr> found;
  std::set<ir::Expr> seen;
  visit(root, [&](ir::Expr e) {
    if (e->op == op && seen.insert(e).second) found.push_back(e);
  });
  return found;
}

bool contains(ir::Expr root, ir::Expr leaf) {
  bool found = false;
  visit(root, [&](ir::Expr e) { found |= e == leaf; });
  return found;
}

// The factor of `leaf` in an expression that is a sum of multiples of these leaves and nothing
// else; null: 0. Sets `linear` to false for other expressions.
class Coefficient {
 public:
  Coefficient(ir::ExprPool& pool, Axes leaves) : pool_(pool), leaves_(std::move(leaves)) {}

  ir::Expr of(ir::Expr e, ir::Expr leaf) {
    if (e == leaf) return pool_.number(1, e->dtype);
    if (std::find(leaves_.begin(), leaves_.end(), e) != leaves_.end()) return nullptr;
    if (e->is_constant() && e->number == 0) return nullptr;
    switch (e->op) {
      case ir::ExprOp::Add:
      case ir::ExprOp::Sub:
        return sum(e, leaf);
      case ir::ExprOp::Mul:
        return product(e, leaf);
      case ir::ExprOp::Div: {
        if (has_leaf(e->args[1])) return other();
        const ir::Expr above = of(e->args[0], leaf);
        return above ? pool_.div(above, e->args[1]) : nullptr;
      }
      case ir::ExprOp::Neg: {
        const ir::Expr inner = of(e->args[0], leaf);
        return inner ? pool_.make(ir::ExprOp::Neg, {inner}) : nullptr;
      }
      case ir::ExprOp::Select: {
        if (has_leaf(e->args[0])) return other();
        const ir::Expr first = of(e->args[1], leaf), second = of(e->args[2], leaf);
        if (!first && !second) return nullptr;
        const ir::Expr zero = pool_.number(0, e->dtype);
        return pool_.select(e->args[0], first ? first : zero, second ? second : zero);
      }
      default:
        return other();
    }
  }
  bool linear() const { return linear_; }

 private:
  bool has_leaf(ir::Expr e) const {
    return std::any_of(leaves_.begin(), leaves_.end(),
                       [&](ir::Expr leaf) { return contains(e, leaf); });
  }
  ir::Expr other() {
    linear_ = false;
    return nullptr;
  }

  ir::Expr sum(ir::Expr e, ir::Expr leaf) {
    ir::Expr result = nullptr;
    for (size_t i = 0; i < e->args.size(); ++i) {
      ir::Expr part = of(e->args[i], leaf);
      if (!part) continue;
      const bool subtracted = e->op == ir::ExprOp::Sub && i > 0;
      if (!result) {
        result = subtracted ? pool_.make(ir::ExprOp::Neg, {part}) : part;
      } else {
        result = subtracted ? pool_.sub(result, part) : pool_.add(result, part);
      }
    }
    return result;
  }

  ir::Expr product(ir::Expr e, ir::Expr leaf) {
    ir::Expr result = nullptr, factors = nullptr;
    int linear = 0;
    for (ir::Expr arg : e->args) {
      if (has_leaf(arg)) {
        ++linear;
        result = of(arg, leaf);
      } else {
        factors = factors ? pool_.mul(factors, arg) : arg;
      }
    }
    if (linear != 1) return other();
    if (!result || !factors) return result;
    return result->is_constant() && result->number == 1 ? factors : pool_.mul(factors, result);
  }

  ir::ExprPool& pool_;
  const Axes leaves_;
  bool linear_ = true;
};

// The only outermost sum of a body, over one axis of a known number of points; else null.
ir::Expr only_sum(ir::Expr body) {
  const std::vector<ir::Expr> reduces = nodes_of(body, ir::ExprOp::Reduce);
  if (reduces.size() != 1 || reduces[0]->reduction != ir::Reduction::Sum) return nullptr;
  const bool known = is_float(reduces[0]->dtype) && reduces[0]->extent()->is_constant();
  return known ? reduces[0] : nullptr;
}

// The terms of a sum as they are above.
struct Turns {
  ir::Expr t, axis, place;       // κ, and κt mod N
  ir::Expr angle, cosine, sine;  // θ, and its functions
  ir::Expr a, b;
  int64_t points;
};

// Whether the angle is c·place, where c has whole turns over the points.
bool turns_around(ir::ExprPool& pool, ir::Expr angle, ir::Expr place, int64_t points) {
  const std::vector<ir::Expr> casts = nodes_of(angle, ir::ExprOp::Cast);
  const auto cast =
      std::find_if(casts.begin(), casts.end(), [&](ir::Expr e) { return e->args[0] == place; });
  if (cast == casts.end()) return false;
  Coefficient coefficient(pool, {*cast});
  const ir::Expr c = coefficient.of(angle, *cast);
  if (!c || !coefficient.linear()) return false;
  bool known = true;
  visit(c, [&](ir::Expr e) {
    known &= e->op != ir::ExprOp::Read && e->op != ir::ExprOp::Axis && e->op != ir::ExprOp::Symbol;
  });
  if (!known) return false;
  const double value = evaluate(c, [](ir::Expr) { return 0.0; });
  const double turns = value * static_cast<double>(points) / (2 * std::numbers::pi);
  return std::abs(turns) > 0.5 && std::abs(turns - std::round(turns)) < 1e-5;
}

std::optional<Turns> turns_of(ir::ExprPool& pool, const Axes& axes, ir::Expr sum) {
  Turns turns;
  turns.t = sum->bound_axis();
  turns.points = sum->extent()->integer;
  const ir::Expr term = sum->body();
  const auto cosines = nodes_of(term, ir::ExprOp::Cos), sines = nodes_of(term, ir::ExprOp::Sin);
  if (cosines.size() != 1 || sines.size() != 1) return std::nullopt;
  turns.cosine = cosines[0], turns.sine = sines[0];
  turns.angle = turns.cosine->args[0];
  if (turns.sine->args[0] != turns.angle) return std::nullopt;
  for (ir::Expr e : nodes_of(turns.angle, ir::ExprOp::FloorMod)) {
    const auto affine = affine_in(pool, e->args[0], turns.t);
    if (!e->args[1]->is_constant(turns.points) || !affine) continue;
    const bool axis = std::find(axes.begin(), axes.end(), affine->stride) != axes.end();
    if (!axis || !affine->base->is_constant(0)) continue;
    turns.place = e;
    turns.axis = affine->stride;
  }
  if (!turns.place || !turns_around(pool, turns.angle, turns.place, turns.points)) {
    return std::nullopt;
  }
  Coefficient coefficient(pool, {turns.cosine, turns.sine});
  turns.a = coefficient.of(term, turns.cosine);
  turns.b = coefficient.of(term, turns.sine);
  if (!coefficient.linear() || !turns.a || !turns.b) return std::nullopt;
  if (turns.a->depends_on(turns.axis) || turns.b->depends_on(turns.axis)) return std::nullopt;
  return turns;
}

bool is_zero(ir::Expr e) { return e->is_constant() && e->number == 0; }

bool are_opposite(ir::Expr a, ir::Expr b) {
  const auto negates = [](ir::Expr x, ir::Expr y) {
    return x->op == ir::ExprOp::Neg && x->args[0] == y;
  };
  return negates(a, b) || negates(b, a) || (is_zero(a) && is_zero(b));
}

// An axis of two points of which the second one's sum is that of the first one a quarter of a turn
// on, as the imaginary part is: A₁ = −B₀, B₁ = A₀. Null: none. `at`: with the first point.
ir::Expr quarter_of(ir::ExprPool& pool, const Axes& axes, Turns& at) {
  for (ir::Expr axis : axes) {
    if (axis->op != ir::ExprOp::Axis || !axis->extent()->is_constant(2)) continue;
    const auto with = [&](ir::Expr e, int64_t point) {
      return pool.substitute(e, {{axis, pool.integer(point)}});
    };
    const ir::Expr a = with(at.a, 0), b = with(at.b, 0);
    if (with(at.b, 1) != a || !are_opposite(with(at.a, 1), b)) continue;
    at.a = a;
    at.b = b;
    return axis;
  }
  return nullptr;
}

// N1 of the two factors nearest to each other, the smaller one; 0: none, or one is much greater.
int64_t factor_of(int64_t points) {
  constexpr int64_t kFar = 8;
  for (auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(points))); factor > 1;
       --factor) {
    if (points % factor == 0) return points / factor <= kFar * factor ? factor : 0;
  }
  return 0;
}

class Factors {
 public:
  Factors(ir::ExprPool& pool, const Axes& axes, const Store& store, ir::Expr sum,
          const Turns& turns, ir::Expr quarter, int64_t first, int64_t scratch)
      : pool_(pool),
        axes_(axes),
        store_(store),
        sum_(sum),
        turns_(turns),
        quarter_(quarter),
        dtype_(sum->dtype),
        n1_(first),
        n2_(turns.points / first),
        table_(scratch),
        scratch_(scratch + 1),
        t1_(pool.axis("t1", pool.integer(n1_))),
        t2_(pool.axis("t2", pool.integer(n2_))),
        rho_(pool.axis("rho", pool.integer(n1_))),
        part_(pool.axis("s", pool.integer(2))) {
    for (ir::Expr axis : axes) {
      if (turns.a->depends_on(axis) || turns.b->depends_on(axis)) own_.push_back(axis);
    }
  }

  FactoredTurns run() {
    FactoredTurns result;
    result.dtype = dtype_;
    Axes axes = own_;
    axes.insert(axes.end(), {rho_, t2_, part_});
    result.elements = product_of(pool_, extents_of(pool_, axes));
    result.table_elements = 2 * turns_.points;
    result.table = table();
    result.inner = {axes, {scratch_, inner(), offset(rho_, t2_, part_)}};
    // Axes of whole periods, and of the points behind them.
    const int64_t points = turns_.axis->extent()->integer, periods = points / n1_;
    const ir::Expr q = pool_.axis("q", pool_.integer(periods)),
                   r = pool_.axis("r", pool_.integer(n1_));
    result.outer.push_back(outer({q, r}, q, r));
    if (const int64_t rest = points - periods * n1_; rest > 0) {
      const ir::Expr j = pool_.axis("j", pool_.integer(rest));
      result.outer.push_back(outer({j}, pool_.integer(periods), j));
    }
    return result;
  }

 private:
  // Of P (part 0) or Q in the scratch buffer.
  ir::Expr offset(ir::Expr rho, ir::Expr t2, ir::Expr part) const {
    ir::Expr result = pool_.integer(0);
    for (ir::Expr axis : own_) result = pool_.add(pool_.mul(result, axis->extent()), axis);
    result = pool_.add(pool_.mul(result, pool_.integer(n1_)), rho);
    result = pool_.add(pool_.mul(result, pool_.integer(n2_)), t2);
    return pool_.add(pool_.mul(result, pool_.integer(2)), part);
  }

  // cos θ(m) or sin θ(m) of the table.
  ir::Expr function_of(ir::ExprOp op, ir::Expr m) const {
    const ir::Expr at = pool_.mul(m, pool_.integer(2));
    return pool_.read(table_, dtype_,
                      {op == ir::ExprOp::Cos ? at : pool_.add(at, pool_.integer(1))});
  }

  DividedStore table() const {
    const ir::Expr m = pool_.axis("m", pool_.integer(turns_.points));
    const auto at = [&](ir::Expr function) {
      return pool_.substitute(function, {{turns_.place, m}});
    };
    const ir::Expr first = pool_.make(ir::ExprOp::Equal, {part_, pool_.integer(0)});
    return {{m, part_},
            {table_, pool_.select(first, at(turns_.cosine), at(turns_.sine)),
             pool_.add(pool_.mul(m, pool_.integer(2)), part_)}};
  }

  ir::Expr inner() const {
    const ir::Expr t = pool_.add(pool_.mul(t1_, pool_.integer(n2_)), t2_);
    const ir::Expr a = pool_.substitute(turns_.a, {{turns_.t, t}}),
                   b = pool_.substitute(turns_.b, {{turns_.t, t}});
    const ir::Expr place =
        pool_.mul(pool_.integer(n2_), pool_.floormod(pool_.mul(rho_, t1_), pool_.integer(n1_)));
    const ir::Expr cosine = function_of(ir::ExprOp::Cos, place),
                   sine = function_of(ir::ExprOp::Sin, place),
                   first = pool_.make(ir::ExprOp::Equal, {part_, pool_.integer(0)});
    const ir::Expr of_a = pool_.select(first, cosine, pool_.make(ir::ExprOp::Neg, {sine})),
                   of_b = pool_.select(first, sine, cosine);
    return pool_.reduce(ir::Reduction::Sum, t1_, sum_of(a, of_a, b, of_b));
  }

  // a·x + b·y, where a or b may be the number 0.
  ir::Expr sum_of(ir::Expr a, ir::Expr x, ir::Expr b, ir::Expr y) const {
    if (is_zero(a)) return pool_.mul(b, y);
    if (is_zero(b)) return pool_.mul(a, x);
    return pool_.add(pool_.mul(a, x), pool_.mul(b, y));
  }

  // κ by q and ρ, which have these axes.
  DividedStore outer(const Axes& own, ir::Expr q, ir::Expr rho) const {
    const ir::Expr first = pool_.integer(n1_), kappa = pool_.add(pool_.mul(q, first), rho);
    const ir::Expr around = pool_.floormod(pool_.mul(q, t2_), pool_.integer(n2_));
    const auto function = [&](ir::ExprOp op, bool far) {
      return function_of(op, far ? pool_.mul(first, around) : pool_.mul(rho, t2_));
    };
    const auto read = [&](int64_t part) {
      return pool_.read(scratch_, dtype_, {offset(rho, t2_, pool_.integer(part))});
    };
    const ir::Expr cosine = function(ir::ExprOp::Cos, false),
                   sine = function(ir::ExprOp::Sin, false);
    const ir::Expr of_cosine = pool_.add(pool_.mul(read(0), cosine), pool_.mul(read(1), sine)),
                   of_sine = pool_.sub(pool_.mul(read(1), cosine), pool_.mul(read(0), sine));
    ir::Expr by_cosine = function(ir::ExprOp::Cos, true), by_sine = function(ir::ExprOp::Sin, true);
    if (quarter_ != nullptr) {
      const ir::Expr first_point = pool_.make(ir::ExprOp::Equal, {quarter_, pool_.integer(0)}),
                     further = pool_.make(ir::ExprOp::Neg, {by_cosine}), far_sine = by_sine;
      by_sine = pool_.select(first_point, by_sine, further);
      by_cosine = pool_.select(first_point, by_cosine, far_sine);
    }
    const ir::Expr term = pool_.add(pool_.mul(of_cosine, by_cosine), pool_.mul(of_sine, by_sine));
    const ir::Expr sum = pool_.reduce(ir::Reduction::Sum, t2_, term);
    DividedStore result{axes_, store_};
    const auto at = std::find(result.axes.begin(), result.axes.end(), turns_.axis);
    result.axes.insert(result.axes.erase(at), own.begin(), own.end());
    result.store.body =
        pool_.substitute(pool_.substitute(store_.body, {{sum_, sum}}), {{turns_.axis, kappa}});
    result.store.offset = pool_.substitute(store_.offset, {{turns_.axis, kappa}});
    return result;
  }

  ir::ExprPool& pool_;
  const Axes& axes_;
  const Store& store_;
  const ir::Expr sum_;
  const Turns& turns_;
  const ir::Expr quarter_;
  const DType dtype_;
  const int64_t n1_, n2_, table_, scratch_;
  const ir::Expr t1_, t2_, rho_, part_;
  Axes own_;
};

}  // namespace

std::optional<FactoredTurns> factored_turns(ir::ExprPool& pool, const Axes& axes,
                                            const Store& store, int64_t scratch) {
  constexpr int64_t kFewPoints = 32, kFewPeriods = 2;
  const ir::Expr sum = only_sum(store.body);
  if (!sum || sum->extent()->integer < kFewPoints) return std::nullopt;
  auto turns = turns_of(pool, axes, sum);
  if (!turns || !turns->axis->extent()->is_constant()) return std::nullopt;
  const int64_t first = factor_of(turns->points);
  if (first == 0 || turns->axis->extent()->integer < kFewPeriods * first) return std::nullopt;
  const ir::Expr quarter = quarter_of(pool, axes, *turns);
  return Factors(pool, axes, store, sum, *turns, quarter, first, scratch).run();
}

}  // namespace redfuser::codegen
