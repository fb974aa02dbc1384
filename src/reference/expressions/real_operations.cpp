#include "reference/expressions/real_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "reference/expressions/zip.h"

namespace redfuser::reference {
namespace {

using Real = double (*)(double);
using Test = int64_t (*)(double);

// Functions of one real number.
Real real_function(ir::ExprOp op) {
  switch (op) {
    case ir::ExprOp::Neg:
      return [](double x) { return -x; };
    case ir::ExprOp::Abs:
      return [](double x) { return std::fabs(x); };
    case ir::ExprOp::Sign:
      return [](double x) { return std::isnan(x) ? x : double(x > 0) - double(x < 0); };
    case ir::ExprOp::Exp:
      return [](double x) { return std::exp(x); };
    case ir::ExprOp::Log:
      return [](double x) { return std::log(x); };
    case ir::ExprOp::Sqrt:
      return [](double x) { return std::sqrt(x); };
    case ir::ExprOp::Reciprocal:
      return [](double x) { return 1 / x; };
    case ir::ExprOp::Floor:
      return [](double x) { return std::floor(x); };
    case ir::ExprOp::Ceil:
      return [](double x) { return std::ceil(x); };
    case ir::ExprOp::Round:
      return [](double x) { return std::nearbyint(x); };
    case ir::ExprOp::Sin:
      return [](double x) { return std::sin(x); };
    case ir::ExprOp::Cos:
      return [](double x) { return std::cos(x); };
    case ir::ExprOp::Tan:
      return [](double x) { return std::tan(x); };
    case ir::ExprOp::Asin:
      return [](double x) { return std::asin(x); };
    case ir::ExprOp::Acos:
      return [](double x) { return std::acos(x); };
    case ir::ExprOp::Atan:
      return [](double x) { return std::atan(x); };
    case ir::ExprOp::Sinh:
      return [](double x) { return std::sinh(x); };
    case ir::ExprOp::Cosh:
      return [](double x) { return std::cosh(x); };
    case ir::ExprOp::Tanh:
      return [](double x) { return std::tanh(x); };
    case ir::ExprOp::Asinh:
      return [](double x) { return std::asinh(x); };
    case ir::ExprOp::Acosh:
      return [](double x) { return std::acosh(x); };
    case ir::ExprOp::Atanh:
      return [](double x) { return std::atanh(x); };
    case ir::ExprOp::Erf:
      return [](double x) { return std::erf(x); };
    default:
      return nullptr;
  }
}

template <bool max>
double extreme(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return max ? std::max(a, b) : std::min(a, b);
}

}  // namespace

Lanes of_real(ir::ExprOp op, const Numbers& x) {
  if (const Real function = real_function(op)) return lanes(Numbers(x.unaryExpr(function)));
  const auto test = [&](Test holds) { return lanes(Words(x.unaryExpr(holds))); };
  switch (op) {
    case ir::ExprOp::IsNaN:
      return test([](double a) { return word(std::isnan(a)); });
    case ir::ExprOp::IsPosInf:
      return test([](double a) { return word(std::isinf(a) && a > 0); });
    case ir::ExprOp::IsNegInf:
      return test([](double a) { return word(std::isinf(a) && a < 0); });
    default:
      internal_error("reference: no function {} of a real number", static_cast<int>(op));
  }
}

Lanes of_reals(ir::ExprOp op, const Numbers& a, const Numbers& b) {
  const auto reals = [&](auto f) { return lanes(Numbers(zip(a, b, f))); };
  const auto tests = [&](auto f) {
    return lanes(Words(zip(a, b, [f](double x, double y) { return word(f(x, y)); })));
  };
  switch (op) {
    case ir::ExprOp::Add:
      return reals([](double x, double y) { return x + y; });
    case ir::ExprOp::Sub:
      return reals([](double x, double y) { return x - y; });
    case ir::ExprOp::Mul:
      return reals([](double x, double y) { return x * y; });
    case ir::ExprOp::Div:
      return reals([](double x, double y) { return x / y; });
    case ir::ExprOp::FloorDiv:
      return reals([](double x, double y) { return y == 0 ? 0 : std::floor(x / y); });
    case ir::ExprOp::FloorMod:
      return reals([](double x, double y) { return y == 0 ? 0 : x - y * std::floor(x / y); });
    case ir::ExprOp::TruncMod:
      return reals([](double x, double y) { return std::fmod(x, y); });
    case ir::ExprOp::Pow:
      return reals([](double x, double y) { return std::pow(x, y); });
    case ir::ExprOp::Min:
      return reals(extreme<false>);
    case ir::ExprOp::Max:
      return reals(extreme<true>);
    case ir::ExprOp::Less:
      return tests([](double x, double y) { return x < y; });
    case ir::ExprOp::LessEqual:
      return tests([](double x, double y) { return x <= y; });
    case ir::ExprOp::Equal:
      return tests([](double x, double y) { return x == y; });
    default:
      internal_error("reference: no operation {} of real numbers", static_cast<int>(op));
  }
}

}  // namespace redfuser::reference
