#include "cascade/visibility/running.h"

#include <limits>
#include <utility>
#include <vector>

#include "cascade/visibility/index_condition.h"
#include "ir/polynomial.h"
#include "ir/scalars/integers.h"

namespace redfuser::cascade {
namespace {

bool combines(ir::Reduction reduction) {
  return reduction == ir::Reduction::Sum || reduction == ir::Reduction::Prod ||
         reduction == ir::Reduction::Max || reduction == ir::Reduction::Min;
}

bool is_identity(ir::Reduction reduction, ir::Expr e) {
  if (!e->is_constant()) return false;
  if (reduction == ir::Reduction::Sum) return e->is_constant(0);
  if (reduction == ir::Reduction::Prod) return e->is_constant(1);
  const bool least = reduction == ir::Reduction::Max;
  if (!is_float(e->dtype)) {
    if (!is_integer(e->dtype)) return false;
    return e->integer == (least ? ir::lowest_word(e->dtype) : ir::highest_word(e->dtype));
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return e->number == (least ? -infinity : infinity);
}

// `element` where `condition` is `wanted`, the identity elsewhere.
struct Hidden {
  ir::Expr condition;
  bool wanted;
  ir::Expr element, identity;
};

// Casts of a selection are casts of both sides.
std::optional<Hidden> hidden(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr body) {
  if (body->op == ir::ExprOp::Cast) {
    auto inner = hidden(pool, reduction, body->args[0]);
    if (!inner) return std::nullopt;
    inner->element = pool.cast(body->dtype, inner->element);
    inner->identity = pool.cast(body->dtype, inner->identity);
    if (!is_identity(reduction, inner->identity)) return std::nullopt;
    return inner;
  }
  if (body->op != ir::ExprOp::Select) return std::nullopt;
  const bool wanted = is_identity(reduction, body->args[2]);
  if (!wanted && !is_identity(reduction, body->args[1])) return std::nullopt;
  return Hidden{body->args[0], wanted, body->args[wanted ? 1 : 2], body->args[wanted ? 2 : 1]};
}

// i - l + c >= 0, or l - i + c >= 0.
struct Order {
  ir::Expr axis;
  bool reverse;
  int64_t slack;
};

std::optional<Order> order_of(ir::Expr f, ir::Expr streamed) {
  Order order{nullptr, false, 0};
  int64_t own = 0, other = 0;
  for (const auto& [monomial, coefficient] : ir::to_polynomial(f)) {
    if (monomial.empty()) {
      order.slack = coefficient;
    } else if (monomial.size() != 1 || monomial[0]->op != ir::ExprOp::Axis) {
      return std::nullopt;
    } else if (monomial[0] == streamed) {
      own = coefficient;
    } else {
      if (order.axis) return std::nullopt;
      order.axis = monomial[0];
      other = coefficient;
    }
  }
  if (!order.axis || own * other != -1) return std::nullopt;
  order.reverse = own > 0;
  return order;
}

// A conjunction is hidden in turn, by the parts that do not hold an order first.
std::optional<Order> split_order(ir::ExprPool& pool, Hidden& hidden, ir::Expr streamed) {
  if (hidden.condition->op == ir::ExprOp::And && hidden.wanted) {
    for (const int side : {0, 1}) {
      Hidden part = hidden;
      part.condition = hidden.condition->args[static_cast<size_t>(side)];
      part.element = pool.select(hidden.condition->args[static_cast<size_t>(1 - side)],
                                 hidden.element, hidden.identity);
      auto order = split_order(pool, part, streamed);
      if (!order || part.element->depends_on(order->axis)) continue;
      hidden = part;
      return order;
    }
    return std::nullopt;
  }
  const IndexCondition form = index_condition(pool, hidden.condition, hidden.wanted);
  if (form.kind != IndexCondition::Kind::NonNegative) return std::nullopt;
  return order_of(form.expr, streamed);
}

}  // namespace

std::optional<Running> running_reduction(ir::ExprPool& pool, ir::Expr reduce) {
  if (reduce->op != ir::ExprOp::Reduce || !combines(reduce->reduction)) return std::nullopt;
  if (reduce->free_axes.empty()) return std::nullopt;
  auto part = hidden(pool, reduce->reduction, reduce->body());
  if (!part) return std::nullopt;
  ir::Expr streamed = reduce->bound_axis();
  const auto order = split_order(pool, *part, streamed);
  if (!order || order->axis->extent() != streamed->extent()) return std::nullopt;
  const bool near = order->slack == 0 || order->slack == -1;
  if (!near || part->element->depends_on(order->axis) || part->element->bound_level > 0) {
    return std::nullopt;
  }
  ir::Expr element = pool.substitute(part->element, {{streamed, order->axis}});
  return Running{reduce, order->axis, element, order->reverse, order->slack == -1};
}

std::optional<Running> running_body(ir::ExprPool& pool, ir::Expr body) {
  std::optional<Running> found;
  bool others = false;
  ir::visit(
      body,
      [&](ir::Expr e) {
        if (e->op != ir::ExprOp::Reduce) return;
        if (!found && !others) found = running_reduction(pool, e);
        others |= !found || found->reduce != e;
      },
      false);
  return others ? std::nullopt : found;
}

}  // namespace redfuser::cascade
