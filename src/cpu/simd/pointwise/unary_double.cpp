#include "cpu/simd/pointwise/unary.h"
#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {
namespace {

RF_FUNCTION(Neg, double, double, -x)
RF_FUNCTION(Abs, double, double, __builtin_fabs(x))
RF_FUNCTION(Sign, double, double, (x != x ? x : (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0))))
RF_FUNCTION(Exp, double, double, exp_of(x))
RF_FUNCTION(Log, double, double, log_of(x))
RF_FUNCTION(Sqrt, double, double, __builtin_sqrt(x))
RF_FUNCTION(Reciprocal, double, double, 1.0 / x)
RF_FUNCTION(Floor, double, double, __builtin_floor(x))
RF_FUNCTION(Ceil, double, double, __builtin_ceil(x))
RF_FUNCTION(Round, double, double, __builtin_rint(x))
RF_FUNCTION(Sin, double, double, __builtin_sin(x))
RF_FUNCTION(Cos, double, double, __builtin_cos(x))
RF_FUNCTION(Tan, double, double, __builtin_tan(x))
RF_FUNCTION(Asin, double, double, __builtin_asin(x))
RF_FUNCTION(Acos, double, double, __builtin_acos(x))
RF_FUNCTION(Atan, double, double, __builtin_atan(x))
RF_FUNCTION(Sinh, double, double, __builtin_sinh(x))
RF_FUNCTION(Cosh, double, double, __builtin_cosh(x))
RF_FUNCTION(Tanh, double, double, tanh_of(x))
RF_FUNCTION(Asinh, double, double, __builtin_asinh(x))
RF_FUNCTION(Acosh, double, double, __builtin_acosh(x))
RF_FUNCTION(Atanh, double, double, __builtin_atanh(x))
RF_FUNCTION(Erf, double, double, __builtin_erf(x))
RF_FUNCTION(RoundHalf, double, double, half_to_float(float_to_half(static_cast<float>(x))))
RF_FUNCTION(RoundBFloat, double, double, bfloat_to_float(float_to_bfloat(static_cast<float>(x))))
RF_FUNCTION(IsNaN, uint8_t, double, x != x)
RF_FUNCTION(IsPosInf, uint8_t, double, x == __builtin_inf())
RF_FUNCTION(IsNegInf, uint8_t, double, x == -__builtin_inf())

}  // namespace

void add_unary_double(KernelTable& table) {
  UnaryFn* row = table.unary[static_cast<int>(Elem::F64)];
#define RF_UNARY(NAME, REFERENCE, ...) add_unary<double, NAME>(row, UnaryOp::NAME);
#include "ir/scalars/operations.def"
  add_unary<double, RoundHalf>(row, UnaryOp::RoundHalf);
  add_unary<double, RoundBFloat>(row, UnaryOp::RoundBFloat);
}

}  // namespace redfuser::cpu::RF_ISA
