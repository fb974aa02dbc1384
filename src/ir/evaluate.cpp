#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/low_bit.h"
#include "ir/expr.h"

namespace redfuser {
namespace {

double propagate_nan(double a, double b, bool max) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return max ? std::max(a, b) : std::min(a, b);
}

int64_t as_int(double value) { return static_cast<int64_t>(value); }

double cast_to(DType dtype, double value) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float64:
      return value;  // rounding is the executor's; the reference is exact
    case DType::Bool:
      return value != 0;
    case DType::Int32:
      return static_cast<double>(static_cast<int32_t>(as_int(value)));
    case DType::Int16:
      return static_cast<double>(static_cast<int16_t>(as_int(value)));
    case DType::Int8:
      return static_cast<double>(static_cast<int8_t>(as_int(value)));
    case DType::UInt8:
      return static_cast<double>(static_cast<uint8_t>(as_int(value)));
    case DType::UInt16:
      return static_cast<double>(static_cast<uint16_t>(as_int(value)));
    case DType::UInt32:
      return static_cast<double>(static_cast<uint32_t>(as_int(value)));
    case DType::Int4:
      return static_cast<double>(((as_int(value) & 15) ^ 8) - 8);
    case DType::UInt4:
      return static_cast<double>(as_int(value) & 15);
    case DType::Int2:
      return static_cast<double>(((as_int(value) & 3) ^ 2) - 2);
    case DType::UInt2:
      return static_cast<double>(as_int(value) & 3);
    default:
      return std::trunc(value);
  }
}

// `value` of type `from` as one of `to`; low-bit floats are their codes.
double cast_between(DType to, DType from, double value) {
  if (to == from) return value;
  if (is_low_bit_float(from)) value = low_bit_value(from, static_cast<uint8_t>(as_int(value)));
  return is_low_bit_float(to) ? low_bit_code(to, static_cast<float>(value)) : cast_to(to, value);
}

double binary(ExprOp op, bool real, double a, double b) {
  switch (op) {
    case ExprOp::Sub:
      return a - b;
    case ExprOp::Div:
      return real ? a / b : b == 0 ? 0 : std::trunc(a / b);
    case ExprOp::FloorDiv:
      return b == 0 ? 0 : std::floor(a / b);
    case ExprOp::FloorMod:
      return b == 0 ? 0 : a - b * std::floor(a / b);
    case ExprOp::TruncMod:
      return real ? std::fmod(a, b) : b == 0 ? 0 : a - b * std::trunc(a / b);
    case ExprOp::Pow:
      return real ? std::pow(a, b) : std::trunc(std::pow(a, b));
    case ExprOp::Less:
      return a < b;
    case ExprOp::LessEqual:
      return a <= b;
    case ExprOp::Equal:
      return a == b;
    case ExprOp::And:
      return a != 0 && b != 0;
    case ExprOp::Or:
      return a != 0 || b != 0;
    case ExprOp::Xor:
      return (a != 0) != (b != 0);
    case ExprOp::BitAnd:
      return static_cast<double>(as_int(a) & as_int(b));
    case ExprOp::BitOr:
      return static_cast<double>(as_int(a) | as_int(b));
    case ExprOp::BitXor:
      return static_cast<double>(as_int(a) ^ as_int(b));
    case ExprOp::ShiftLeft:
      return static_cast<double>(static_cast<uint64_t>(as_int(a)) << (as_int(b) & 63));
    case ExprOp::ShiftRight:
      return static_cast<double>(static_cast<uint64_t>(as_int(a)) >> (as_int(b) & 63));
    default:
      internal_error("evaluate: no binary operation {}", static_cast<int>(op));
  }
}

double unary(ExprOp op, double x) {
  switch (op) {
    case ExprOp::Not:
      return x == 0;
    case ExprOp::BitNot:
      return static_cast<double>(~as_int(x));
    case ExprOp::Neg:
      return -x;
    case ExprOp::Abs:
      return std::abs(x);
    case ExprOp::Sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case ExprOp::Exp:
      return std::exp(x);
    case ExprOp::Log:
      return std::log(x);
    case ExprOp::Sqrt:
      return std::sqrt(x);
    case ExprOp::Reciprocal:
      return 1 / x;
    case ExprOp::Floor:
      return std::floor(x);
    case ExprOp::Ceil:
      return std::ceil(x);
    case ExprOp::Round:
      return std::nearbyint(x);
    case ExprOp::Sin:
      return std::sin(x);
    case ExprOp::Cos:
      return std::cos(x);
    case ExprOp::Tan:
      return std::tan(x);
    case ExprOp::Asin:
      return std::asin(x);
    case ExprOp::Acos:
      return std::acos(x);
    case ExprOp::Atan:
      return std::atan(x);
    case ExprOp::Sinh:
      return std::sinh(x);
    case ExprOp::Cosh:
      return std::cosh(x);
    case ExprOp::Tanh:
      return std::tanh(x);
    case ExprOp::Asinh:
      return std::asinh(x);
    case ExprOp::Acosh:
      return std::acosh(x);
    case ExprOp::Atanh:
      return std::atanh(x);
    case ExprOp::Erf:
      return std::erf(x);
    case ExprOp::IsNaN:
      return std::isnan(x);
    case ExprOp::IsPosInf:
      return std::isinf(x) && x > 0;
    case ExprOp::IsNegInf:
      return std::isinf(x) && x < 0;
    default:
      internal_error("evaluate: no unary operation {}", static_cast<int>(op));
  }
}

class Evaluator {
 public:
  explicit Evaluator(const Environment& environment) : environment_(environment) {}

  double value(Expr expr) {
    switch (expr->op) {
      case ExprOp::Constant:
        return is_float(expr->dtype) ? expr->number : static_cast<double>(expr->integer);
      case ExprOp::Axis: {
        auto bound = bound_.find(expr);
        return bound != bound_.end() ? bound->second : environment_(expr);
      }
      case ExprOp::Symbol:
      case ExprOp::Leaf:
        return environment_(expr);
      case ExprOp::Read:
        return read(expr);
      case ExprOp::Reduce:
        return reduce(expr);
      default:
        break;
    }
    auto known = memo_.find(expr);
    if (known != memo_.end()) return known->second;
    const double result = operation(expr);
    memo_.emplace(expr, result);
    return result;
  }

 private:
  // Reads see their indices as constants, so that the environment needs no bound axes.
  double read(Expr expr) {
    ExprNode concrete = *expr;
    std::vector<ExprNode> indices(expr->args.size(), ExprNode{ExprOp::Constant, DType::Int64});
    for (size_t i = 0; i < expr->args.size(); ++i) {
      indices[i].integer = as_int(value(expr->args[i]));
      concrete.args[i] = &indices[i];
    }
    return environment_(&concrete);
  }

  double operation(Expr expr) {
    const bool real = is_float(expr->args[0]->dtype);
    switch (expr->op) {
      case ExprOp::Add:
      case ExprOp::Mul: {
        double result = value(expr->args[0]);
        for (size_t i = 1; i < expr->args.size(); ++i) {
          const double next = value(expr->args[i]);
          result = expr->op == ExprOp::Add ? result + next : result * next;
        }
        return result;
      }
      case ExprOp::Min:
      case ExprOp::Max:
        return propagate_nan(value(expr->args[0]), value(expr->args[1]), expr->op == ExprOp::Max);
      case ExprOp::Select:
        return value(expr->args[value(expr->args[0]) != 0 ? 1 : 2]);
      case ExprOp::Cast:
        return cast_between(expr->dtype, expr->args[0]->dtype, value(expr->args[0]));
      default:
        return expr->args.size() == 2
                   ? binary(expr->op, real, value(expr->args[0]), value(expr->args[1]))
                   : unary(expr->op, value(expr->args[0]));
    }
  }

  double reduce(Expr expr) {
    Expr axis = expr->bound_axis();
    const int64_t extent = as_int(value(axis->args[0]));
    std::vector<double> elements;
    const auto saved_memo = std::move(memo_);
    const auto saved_bound = bound_;
    for (int64_t i = 0; i < extent; ++i) {
      memo_.clear();
      bound_[axis] = static_cast<double>(i);
      elements.push_back(value(expr->body()));
    }
    bound_ = saved_bound;
    memo_ = saved_memo;
    const int64_t rank = expr->args.size() > 2 ? as_int(value(expr->args[2])) : 0;
    return combine(expr, elements, rank);
  }

  static double combine(Expr expr, const std::vector<double>& elements, int64_t rank) {
    switch (expr->reduction) {
      case Reduction::Sum: {
        double sum = 0;
        for (double x : elements) sum += x;
        return sum;
      }
      case Reduction::Prod: {
        double product = 1;
        for (double x : elements) product *= x;
        return product;
      }
      case Reduction::Max:
      case Reduction::Min: {
        const bool max = expr->reduction == Reduction::Max;
        double result = max ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
        for (double x : elements) result = propagate_nan(result, x, max);
        return result;
      }
      default: {
        const bool largest =
            expr->reduction == Reduction::ArgMax || expr->reduction == Reduction::TopK;
        std::vector<size_t> order(elements.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
          return largest ? elements[a] > elements[b] : elements[a] < elements[b];
        });
        if (rank >= static_cast<int64_t>(order.size())) return 0;
        const size_t chosen = order[static_cast<size_t>(rank)];
        const bool index =
            expr->dtype == DType::Int64 && (expr->integer || expr->reduction == Reduction::ArgMax ||
                                            expr->reduction == Reduction::ArgMin);
        return index ? static_cast<double>(chosen) : elements[chosen];
      }
    }
  }

  const Environment& environment_;
  std::unordered_map<Expr, double> memo_;
  std::unordered_map<Expr, double> bound_;
};

}  // namespace

double evaluate(Expr expr, const Environment& environment) {
  return Evaluator(environment).value(expr);
}

int64_t evaluate_size(Expr expr, std::span<const int64_t> symbols) {
  auto arg = [&](size_t i) { return evaluate_size(expr->args[i], symbols); };
  switch (expr->op) {
    case ExprOp::Constant:
      return expr->integer;
    case ExprOp::Symbol: {
      const auto number = static_cast<size_t>(expr->integer);
      RF_CHECK(number < symbols.size() && symbols[number] >= 0, "size symbol {} is not bound",
               expr->integer);
      return symbols[number];
    }
    case ExprOp::Add:
    case ExprOp::Mul: {
      int64_t result = arg(0);
      for (size_t i = 1; i < expr->args.size(); ++i) {
        const int64_t next = arg(i);
        const bool overflow = expr->op == ExprOp::Add
                                  ? __builtin_add_overflow(result, next, &result)
                                  : __builtin_mul_overflow(result, next, &result);
        if (overflow) user_error("a tensor size overflows 64 bits");
      }
      return result;
    }
    case ExprOp::Min:
      return std::min(arg(0), arg(1));
    case ExprOp::Max:
      // Broadcasting with an empty dimension is empty.
      return arg(0) == 0 || arg(1) == 0 ? 0 : std::max(arg(0), arg(1));
    default:
      break;
  }
  return static_cast<int64_t>(evaluate(expr, [&](Expr leaf) -> double {
    return static_cast<double>(evaluate_size(leaf, symbols));
  }));
}

}  // namespace redfuser
