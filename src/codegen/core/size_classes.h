// Kernels for classes of a size that only a run knows.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// Bools over sizes, by which kernels are chosen; those of constants are constants.
inline ir::Expr less_equal(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::LessEqual, {a, b});
}
inline ir::Expr negated(ir::ExprPool& pool, ir::Expr condition) {
  if (condition->is_constant()) return pool.boolean(condition->integer == 0);
  return pool.make(ir::ExprOp::Not, {condition});
}
// Null stands for true.
inline ir::Expr both(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  if (a->is_constant()) return a->is_constant(1) ? b : a;
  if (b->is_constant()) return b->is_constant(1) ? a : b;
  return pool.make(ir::ExprOp::And, {a, b});
}

// Calls add(config, when) for classes of `size`, where `when` is a bool over sizes that holds for
// one class alone; neighbours with one configuration are one class. `limits` are the greatest sizes
// of the classes, ascending; above the last one sizes count as `many`. best(size) is the
// configuration for a size.
inline void each_size_class(ir::ExprPool& pool, ir::Expr size, std::span<const int64_t> limits,
                            double many, const std::function<KernelConfig(double)>& best,
                            const std::function<void(const KernelConfig&, ir::Expr)>& add) {
  const auto nominal = [&](size_t i) {
    return i < limits.size() ? static_cast<double>(limits[i]) : many;
  };
  ir::Expr above = pool.boolean(true);
  for (size_t i = 0; i <= limits.size();) {
    const KernelConfig choice = best(nominal(i));
    while (++i <= limits.size() && best(nominal(i)) == choice) {
    }
    ir::Expr when = above;
    if (i <= limits.size()) {
      ir::Expr below = pool.make(ir::ExprOp::LessEqual, {size, pool.integer(limits[i - 1])});
      when = pool.make(ir::ExprOp::And, {above, below});
      above = pool.make(ir::ExprOp::And, {above, pool.make(ir::ExprOp::Not, {below})});
    }
    add(choice, when);
  }
}

// The sizes at which holds(sizes), a bool over sizes by the class that `measure` is in; null: none.
// All symbols grow together.
inline ir::Expr sizes_where(ir::ExprPool& pool, ir::Expr measure,
                            const std::function<bool(const KnownSizes&)>& holds) {
  constexpr int64_t kGreatest = int64_t{1} << 24, kLargest = int64_t{1} << 28;
  std::vector<int64_t> limits;
  std::vector<bool> answers;
  for (int64_t size = 1; size <= kLargest; size *= 2) {
    const KnownSizes sizes = KnownSizes::all(size);
    const int64_t count = sizes.of(measure);
    if (!limits.empty() && count <= limits.back()) continue;
    limits.push_back(count);
    answers.push_back(holds(sizes));
    if (count > kGreatest || measure->is_constant()) break;
  }
  const KernelConfig yes{"yes", {}}, no{"no", {}};
  const auto best = [&](double count) {
    const auto found = std::lower_bound(limits.begin(), limits.end(), count);
    const auto i =
        std::min<size_t>(static_cast<size_t>(found - limits.begin()), answers.size() - 1);
    return answers[i] ? yes : no;
  };
  ir::Expr result = nullptr;
  each_size_class(pool, measure, limits, HUGE_VAL, best,
                  [&](const KernelConfig& answer, ir::Expr when) {
                    if (answer == yes) {
                      result = result ? pool.make(ir::ExprOp::Or, {result, when}) : when;
                    }
                  });
  return result;
}

}  // namespace redfuser::codegen
