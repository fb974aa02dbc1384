// Kernels for classes of a size that only a run knows.
#pragma once

#include <functional>
#include <span>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

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

}  // namespace redfuser::codegen
