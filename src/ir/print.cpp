#include <fmt/format.h>

#include <cmath>

#include "ir/expr.h"

namespace redfuser::ir {
namespace {

const char* infix(ExprOp op) {
  switch (op) {
    case ExprOp::Add:
      return " + ";
    case ExprOp::Sub:
      return " - ";
    case ExprOp::Mul:
      return "*";
    case ExprOp::Div:
      return "/";
    case ExprOp::FloorDiv:
      return "//";
    case ExprOp::FloorMod:
      return "%";
    case ExprOp::Less:
      return " < ";
    case ExprOp::LessEqual:
      return " <= ";
    case ExprOp::Equal:
      return " == ";
    case ExprOp::And:
      return " & ";
    case ExprOp::Or:
      return " | ";
    case ExprOp::Xor:
      return " ^ ";
    default:
      return nullptr;
  }
}

const char* function(ExprOp op) {
  switch (op) {
    case ExprOp::TruncMod:
      return "fmod";
    case ExprOp::Pow:
      return "pow";
    case ExprOp::Min:
      return "min";
    case ExprOp::Max:
      return "max";
    case ExprOp::Not:
      return "not";
    case ExprOp::BitAnd:
      return "bitand";
    case ExprOp::BitOr:
      return "bitor";
    case ExprOp::BitXor:
      return "bitxor";
    case ExprOp::BitNot:
      return "bitnot";
    case ExprOp::ShiftLeft:
      return "shl";
    case ExprOp::ShiftRight:
      return "shr";
    case ExprOp::Select:
      return "select";
    case ExprOp::Neg:
      return "-";
    case ExprOp::Abs:
      return "abs";
    case ExprOp::Sign:
      return "sign";
    case ExprOp::Exp:
      return "exp";
    case ExprOp::Log:
      return "log";
    case ExprOp::Sqrt:
      return "sqrt";
    case ExprOp::Reciprocal:
      return "1/";
    case ExprOp::Floor:
      return "floor";
    case ExprOp::Ceil:
      return "ceil";
    case ExprOp::Round:
      return "round";
    case ExprOp::Sin:
      return "sin";
    case ExprOp::Cos:
      return "cos";
    case ExprOp::Tan:
      return "tan";
    case ExprOp::Asin:
      return "asin";
    case ExprOp::Acos:
      return "acos";
    case ExprOp::Atan:
      return "atan";
    case ExprOp::Sinh:
      return "sinh";
    case ExprOp::Cosh:
      return "cosh";
    case ExprOp::Tanh:
      return "tanh";
    case ExprOp::Asinh:
      return "asinh";
    case ExprOp::Acosh:
      return "acosh";
    case ExprOp::Atanh:
      return "atanh";
    case ExprOp::Erf:
      return "erf";
    case ExprOp::IsNaN:
      return "isnan";
    case ExprOp::IsPosInf:
      return "isposinf";
    case ExprOp::IsNegInf:
      return "isneginf";
    default:
      return "?";
  }
}

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

// Expressions share their parts, and a text repeats them: it may be exponential in the expression.
constexpr int kMaxPrinted = 4096;

class Printer {
 public:
  explicit Printer(const ExprPool& pool) : pool_(pool) {}

  // `tight` asks for parentheses around sums and comparisons. What is beyond kMaxPrinted nodes is
  // named by its number, so that equal texts are equal expressions.
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
      default:
        break;
    }
    if (const char* symbol = infix(expr->op)) {
      std::string result;
      for (size_t i = 0; i < expr->args.size(); ++i) {
        if (i) result += symbol;
        result += text(expr->args[i], expr->op != ExprOp::Add || i > 0);
      }
      return tight ? "(" + result + ")" : result;
    }
    return fmt::format("{}({})", function(expr->op), list(expr, 0));
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
