#include "ir/evaluate.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/integers.h"
#include "ir/expr.h"
#include "ir/polynomial.h"
#include "ir/scalars/reference.h"

namespace redfuser::ir {
namespace {

// Values of visited nodes: a list while they are few, as in the body of a cascade.
class Memo {
 public:
  const double* find(Expr expr) const {
    for (const auto& [node, value] : few_) {
      if (node == expr) return &value;
    }
    const auto entry = many_.find(expr);
    return entry == many_.end() ? nullptr : &entry->second;
  }

  void add(Expr expr, double value) {
    if (few_.capacity() == 0) few_.reserve(kFew);
    if (few_.size() < kFew) {
      few_.emplace_back(expr, value);
    } else {
      many_.emplace(expr, value);
    }
  }

  void clear() {
    few_.clear();
    many_.clear();
  }

 private:
  static constexpr size_t kFew = 24;
  std::vector<std::pair<Expr, double>> few_;
  std::unordered_map<Expr, double> many_;
};

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
      case ExprOp::Reduce:
        return reduce(expr);
      default:
        break;
    }
    if (const double* known = memo_.find(expr)) return *known;
    const double result = expr->op == ExprOp::Read ? read(expr) : operation(expr);
    memo_.add(expr, result);
    return result;
  }

 private:
  // Reads see their indices as constants, so that the environment needs no bound axes.
  double read(Expr expr) {
    ExprNode concrete{ExprOp::Read, expr->dtype};
    concrete.integer = expr->integer;
    concrete.free_axes = expr->free_axes;
    std::vector<ExprNode> indices(expr->args.size(), ExprNode{ExprOp::Constant, DType::Int64});
    concrete.args.reserve(indices.size());
    for (size_t i = 0; i < expr->args.size(); ++i) {
      indices[i].integer = as_int(value(expr->args[i]));
      concrete.args.push_back(&indices[i]);
    }
    return environment_(&concrete);
  }

  double operation(Expr expr) {
    const DType dtype = expr->args[0]->dtype;
    switch (expr->op) {
      case ExprOp::Select:
        return value(expr->args[value(expr->args[0]) != 0 ? 1 : 2]);
      case ExprOp::Cast:
        return cast_between(expr->dtype, dtype, value(expr->args[0]));
      default:
        break;
    }
    double result = value(expr->args[0]);
    if (expr->args.size() == 1) return unary(expr->op, dtype, result);
    for (size_t i = 1; i < expr->args.size(); ++i) {
      result = binary(expr->op, dtype, result, value(expr->args[i]));
    }
    return result;
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
        for (double x : elements) sum = binary(ExprOp::Add, expr->dtype, sum, x);
        return sum;
      }
      case Reduction::Prod: {
        double product = 1;
        for (double x : elements) product = binary(ExprOp::Mul, expr->dtype, product, x);
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
        const bool largest = wants_large(expr->reduction);
        std::vector<size_t> order(elements.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
          return largest ? elements[a] > elements[b] : elements[a] < elements[b];
        });
        if (rank >= static_cast<int64_t>(order.size())) return 0;
        const size_t chosen = order[static_cast<size_t>(rank)];
        const bool index =
            expr->dtype == DType::Int64 && (expr->integer || is_arg(expr->reduction));
        return index ? static_cast<double>(chosen) : elements[chosen];
      }
    }
  }

  const Environment& environment_;
  Memo memo_;
  std::unordered_map<Expr, double> bound_;
};

}  // namespace

double evaluate(Expr expr, const Environment& environment) {
  return Evaluator(environment).value(expr);
}

namespace {

class SizeEvaluator {
 public:
  explicit SizeEvaluator(std::span<const int64_t> symbols) : symbols_(symbols) {}

  int64_t value(Expr expr) {
    if (expr->op == ExprOp::Constant) return expr->integer;
    if (expr->op == ExprOp::Symbol) return symbol(expr);
    // Sizes share subexpressions. Most operands are leaves, which need no memo.
    const bool nests = std::any_of(expr->args.begin(), expr->args.end(),
                                   [](Expr arg) { return !arg->args.empty(); });
    if (!nests) return operation(expr);
    const auto known = known_.find(expr);
    if (known != known_.end()) return known->second;
    return known_[expr] = operation(expr);
  }

 private:
  int64_t symbol(Expr expr) const {
    const auto number = static_cast<size_t>(expr->integer);
    RF_CHECK(number < symbols_.size() && symbols_[number] >= 0, "size symbol {} is not bound",
             expr->integer);
    return symbols_[number];
  }

  int64_t operation(Expr expr) {
    auto arg = [&](size_t i) { return value(expr->args[i]); };
    switch (expr->op) {
      case ExprOp::Add:
      case ExprOp::Mul: {
        int64_t result = arg(0);
        for (size_t i = 1; i < expr->args.size(); ++i) {
          const int64_t next = arg(i);
          const bool overflow = expr->op == ExprOp::Add
                                    ? __builtin_add_overflow(result, next, &result)
                                    : __builtin_mul_overflow(result, next, &result);
          if (overflow) throw CoefficientOverflow();
        }
        return result;
      }
      case ExprOp::Min:
        return std::min(arg(0), arg(1));
      case ExprOp::Max: {
        // Broadcasting with an empty dimension is empty.
        const int64_t a = arg(0), b = arg(1);
        return a == 0 || b == 0 ? 0 : std::max(a, b);
      }
      default:
        return saturated<int64_t>(
            evaluate(expr, [&](Expr leaf) { return static_cast<double>(value(leaf)); }));
    }
  }

  std::span<const int64_t> symbols_;
  std::unordered_map<Expr, int64_t> known_;
};

}  // namespace

int64_t evaluate_size(Expr expr, std::span<const int64_t> symbols) {
  return SizeEvaluator(symbols).value(expr);
}

}  // namespace redfuser::ir
