#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

template <ir::ExprOp op>
constexpr OpDef real_function(std::string_view name, int since) {
  return {name, "", since, infer_elementwise<Operand::Float, 1>, lower_op<op>};
}
template <ir::ExprOp op>
constexpr OpDef number_function(std::string_view name, int since) {
  return {name, "", since, infer_elementwise<Operand::Number, 1>, lower_op<op>};
}

constexpr OpDef kOps[] = {
    number_function<ir::ExprOp::Abs>("Abs", 1),
    number_function<ir::ExprOp::Neg>("Neg", 1),
    number_function<ir::ExprOp::Sign>("Sign", 9),
    real_function<ir::ExprOp::Ceil>("Ceil", 1),
    real_function<ir::ExprOp::Floor>("Floor", 1),
    real_function<ir::ExprOp::Round>("Round", 11),
    real_function<ir::ExprOp::Exp>("Exp", 1),
    real_function<ir::ExprOp::Log>("Log", 1),
    real_function<ir::ExprOp::Sqrt>("Sqrt", 1),
    real_function<ir::ExprOp::Reciprocal>("Reciprocal", 1),
    real_function<ir::ExprOp::Sin>("Sin", 7),
    real_function<ir::ExprOp::Cos>("Cos", 7),
    real_function<ir::ExprOp::Tan>("Tan", 7),
    real_function<ir::ExprOp::Asin>("Asin", 7),
    real_function<ir::ExprOp::Acos>("Acos", 7),
    real_function<ir::ExprOp::Atan>("Atan", 7),
    real_function<ir::ExprOp::Sinh>("Sinh", 9),
    real_function<ir::ExprOp::Cosh>("Cosh", 9),
    real_function<ir::ExprOp::Tanh>("Tanh", 1),
    real_function<ir::ExprOp::Asinh>("Asinh", 9),
    real_function<ir::ExprOp::Acosh>("Acosh", 9),
    real_function<ir::ExprOp::Atanh>("Atanh", 9),
    number_function<ir::ExprOp::Erf>("Erf", 9),
};

}  // namespace

std::span<const OpDef> function_ops() { return kOps; }

}  // namespace redfuser::ops
