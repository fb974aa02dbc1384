#include "cascade/algebra/algebra.h"

#include <algorithm>

#include "cascade/algebra/decomposer.h"
#include "cascade/algebra/terms.h"

namespace redfuser::cascade {

bool StageScope::streamed(ir::Expr expr) const {
  return expr->depends_on(stream) ||
         std::any_of(columns.begin(), columns.end(),
                     [&](ir::Expr column) { return expr->depends_on(column); });
}

bool StageScope::results(ir::Expr expr) const { return expr->has_leaf; }

std::variant<std::vector<Term>, Refusal> expand(const StageScope& scope, ir::Expr body) {
  Decomposer decomposer(scope);
  auto terms = decomposer.terms(body);
  if (!terms) return decomposer.refusal;
  return std::move(*terms);
}

std::variant<std::vector<Term>, Refusal> decompose(const StageScope& scope, ir::Expr body) {
  auto expanded = expand(scope, body);
  if (auto* terms = std::get_if<std::vector<Term>>(&expanded)) {
    return collect(scope, std::move(*terms));
  }
  return expanded;
}

}  // namespace redfuser::cascade
