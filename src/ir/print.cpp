#include <fmt/format.h>

#include <cmath>

#include "ir/expr.h"
#include "ir/scalars/operations.h"

namespace redfuser::ir {
namespace {

const char* reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return "sum";
    case Reduction::Prod:
      return "prod";
    case Reduction::Max:
      return "max";
    case Reduction::Min:
      return "min";
    case Reduction::ArgMax:
      return "argmax";
    case Reduction::ArgMin:
      return "argmin";
    case Reduction::TopK:
      return "topk";
    case Reduction::BottomK:
      return "bottomk";
  }
  return "?";
}

const char* leaf_name(LeafKind kind) {
  switch (kind) {
    case LeafKind::Result:
      return "d";
    case LeafKind::State:
      return "A";
    case LeafKind::OldResult:
      return "old";
    case LeafKind::NewResult:
      return "new";
    case LeafKind::Product:
      return "product";
    case LeafKind::Count:
      return "count";
  }
  return "?";
}

// Text repeats shared subexpressions, so its length may be exponential in the number of nodes.
constexpr int kMaxPrinted = 4096;

class Printer {
 public:
  explicit Printer(const ExprPool& pool) : pool_(pool) {}

  // `tight` asks for parentheses around sums and comparisons. Nodes beyond kMaxPrinted are printed
  // as their numbers, so that equal texts are equal expressions.
  std::string text(Expr expr, bool tight = false) {
    if (printed_++ >= kMaxPrinted) return fmt::format("...{}", expr->id);
    switch (expr->op) {
      case ExprOp::Constant:
        if (expr->dtype == DType::Bool) return expr->integer ? "true" : "false";
        if (expr->dtype == DType::UInt64) {
          return fmt::format("{}", static_cast<uint64_t>(expr->integer));
        }
        return is_float(expr->dtype) ? fmt::format("{:.9g}", expr->number)
                                     : fmt::format("{}", expr->integer);
      case ExprOp::Symbol:
        return pool_.symbol_name(expr);
      case ExprOp::Axis:
        return pool_.axis_name(expr);
      case ExprOp::Leaf:
        if (expr->leaf_kind == LeafKind::Count) return "count";
        return fmt::format("{}{}", leaf_name(expr->leaf_kind), expr->integer);
      case ExprOp::Read: {
        if (expr->integer < 0) {
          return fmt::format("d{}.{}[{}]", (-expr->integer - 2) / 2,
                             expr->integer % 2 == 0 ? "value" : "index", list(expr, 0));
        }
        return fmt::format("%{}[{}]", expr->integer, list(expr, 0));
      }
      case ExprOp::Reduce:
        return fmt::format("{}_{}<{}({}{})", reduction_name(expr->reduction),
                           pool_.axis_name(expr->bound_axis()), text(expr->extent(), true),
                           text(expr->body()),
                           expr->args.size() > 2 ? "; " + text(expr->args[2]) : "");
      case ExprOp::Cast:
        return fmt::format("{}({})", name_of(expr->dtype), text(expr->args[0]));
      case ExprOp::Select:
        return fmt::format("select({})", list(expr, 0));
      default:
        break;
    }
    const ScalarOp& op = scalar_op(expr->op);
    if (!op.infix.empty()) {
      std::string result;
      for (size_t i = 0; i < expr->args.size(); ++i) {
        if (i) result += op.infix;
        result += text(expr->args[i], expr->op != ExprOp::Add || i > 0);
      }
      return tight ? "(" + result + ")" : result;
    }
    return fmt::format("{}({})", op.name, list(expr, 0));
  }

 private:
  std::string list(Expr expr, size_t from) {
    std::string result;
    for (size_t i = from; i < expr->args.size(); ++i) {
      if (i > from) result += ",";
      result += text(expr->args[i]);
    }
    return result;
  }
  const ExprPool& pool_;
  int printed_ = 0;
};

}  // namespace

std::string to_string(const ExprPool& pool, Expr expr) { return Printer(pool).text(expr); }

std::string_view name_of(Reduction reduction) { return reduction_name(reduction); }

}  // namespace redfuser::ir
