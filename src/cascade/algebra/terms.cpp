#include "cascade/algebra/terms.h"

#include <algorithm>

namespace redfuser::cascade {

bool Term::uses_results() const {
  auto any = [](const std::vector<ir::Expr>& list) {
    return std::any_of(list.begin(), list.end(), [](ir::Expr e) { return e->has_leaf; });
  };
  return any(d) || any(d_inverse) || any(exp_d) || any(guards);
}

DType state_dtype(DType dtype) {
  if (dtype == DType::Float64) return dtype;
  if (is_float(dtype)) return DType::Float32;
  return dtype == DType::UInt64 ? DType::UInt64 : DType::Int64;
}

ir::Expr product(ir::ExprPool& pool, const std::vector<ir::Expr>& factors, DType dtype) {
  ir::Expr result = nullptr;
  for (ir::Expr factor : factors) {
    ir::Expr next = pool.cast(dtype, factor);
    result = result ? pool.mul(result, next) : next;
  }
  return result ? result : pool.number(1, dtype);
}

ir::Expr sum(ir::ExprPool& pool, const std::vector<ir::Expr>& terms, DType dtype) {
  ir::Expr result = nullptr;
  for (ir::Expr term : terms) {
    ir::Expr next = pool.cast(dtype, term);
    if (result && next->op == ir::ExprOp::Neg) {
      result = pool.sub(result, next->args[0]);
    } else {
      result = result ? pool.add(result, next) : next;
    }
  }
  return result ? result : pool.number(0, dtype);
}

std::vector<Term> collect(const StageScope& scope, std::vector<Term> terms) {
  auto by_id = [](ir::Expr a, ir::Expr b) { return a->id < b->id; };
  std::vector<Term> result;
  for (Term& term : terms) {
    if (term.coefficient == 0) continue;
    std::sort(term.x.begin(), term.x.end(), by_id);
    auto same = std::find_if(result.begin(), result.end(), [&](const Term& other) {
      return other.x == term.x && other.exp_x == term.exp_x && other.exp_d == term.exp_d &&
             other.guards == term.guards;
    });
    if (same == result.end()) {
      result.push_back(std::move(term));
      continue;
    }
    if (same->d == term.d && same->d_inverse == term.d_inverse) {
      same->coefficient += term.coefficient;
      continue;
    }
    ir::ExprPool& pool = scope.pool;
    auto part = [&](const Term& t) {
      DType dtype = DType::Float32;
      for (const auto* list : {&t.d, &t.d_inverse, &t.x}) {
        for (ir::Expr e : *list) dtype = state_dtype(e->dtype);
      }
      ir::Expr d = pool.mul(product(pool, t.d, dtype), pool.number(t.coefficient, dtype));
      return t.d_inverse.empty() ? d : pool.div(d, product(pool, t.d_inverse, dtype));
    };
    same->d = {pool.add(part(*same), part(term))};
    same->d_inverse.clear();
    same->coefficient = 1;
  }
  std::erase_if(result, [](const Term& term) { return term.coefficient == 0; });
  return result;
}

}  // namespace redfuser::cascade
