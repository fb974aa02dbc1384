#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser {
namespace {

template <ExprOp op>
constexpr OpDef real_function(std::string_view name, int since) {
  return {name, "", since, infer_elementwise<Operand::Float, 1>, lower_op<op>};
}
template <ExprOp op>
constexpr OpDef number_function(std::string_view name, int since) {
  return {name, "", since, infer_elementwise<Operand::Number, 1>, lower_op<op>};
}

constexpr OpDef kOps[] = {
    number_function<ExprOp::Abs>("Abs", 1),   number_function<ExprOp::Neg>("Neg", 1),
    number_function<ExprOp::Sign>("Sign", 9), real_function<ExprOp::Ceil>("Ceil", 1),
    real_function<ExprOp::Floor>("Floor", 1), real_function<ExprOp::Round>("Round", 11),
    real_function<ExprOp::Exp>("Exp", 1),     real_function<ExprOp::Log>("Log", 1),
    real_function<ExprOp::Sqrt>("Sqrt", 1),   real_function<ExprOp::Reciprocal>("Reciprocal", 1),
    real_function<ExprOp::Sin>("Sin", 7),     real_function<ExprOp::Cos>("Cos", 7),
    real_function<ExprOp::Tan>("Tan", 7),     real_function<ExprOp::Asin>("Asin", 7),
    real_function<ExprOp::Acos>("Acos", 7),   real_function<ExprOp::Atan>("Atan", 7),
    real_function<ExprOp::Sinh>("Sinh", 9),   real_function<ExprOp::Cosh>("Cosh", 9),
    real_function<ExprOp::Tanh>("Tanh", 1),   real_function<ExprOp::Asinh>("Asinh", 9),
    real_function<ExprOp::Acosh>("Acosh", 9), real_function<ExprOp::Atanh>("Atanh", 9),
    number_function<ExprOp::Erf>("Erf", 9),
};

}  // namespace

std::span<const OpDef> function_ops() { return kOps; }

}  // namespace redfuser
