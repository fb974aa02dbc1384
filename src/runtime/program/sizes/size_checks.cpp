#include "runtime/program/sizes/size_checks.h"

#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"

namespace redfuser::runtime {

SizeChecks::SizeChecks(const ir::Graph& graph) {
  for (const ir::SizeCheck& check : graph.size_checks) {
    Pending pending{&check, {}};
    for (ir::Expr size : {check.a, check.b}) {
      visit(size, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Symbol) pending.symbols.push_back(e->integer);
      });
    }
    pending_.push_back(std::move(pending));
  }
}

void SizeChecks::run(std::span<const int64_t> symbols) {
  auto bound = [&](int64_t symbol) {
    return static_cast<size_t>(symbol) < symbols.size() &&
           symbols[static_cast<size_t>(symbol)] >= 0;
  };
  std::erase_if(pending_, [&](const Pending& pending) {
    if (!std::all_of(pending.symbols.begin(), pending.symbols.end(), bound)) return false;
    const ir::SizeCheck& check = *pending.check;
    const int64_t a = evaluate_size(check.a, symbols), b = evaluate_size(check.b, symbols);
    if (a != b && !(check.broadcast && a == 1)) {
      const auto message = fmt::format("{}: sizes {} and {} do not agree", check.where, a, b);
      // It broadcasts in the other direction, for which the plan has no loop.
      if (check.broadcast && b == 1) throw NeedsValues(message);
      throw UserError(message);
    }
    return true;
  });
}

}  // namespace redfuser::runtime
