#include "cpu/simd/unary.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Negation wraps, as two's complement does.
RF_FUNCTION(Neg, int64_t, int64_t, static_cast<int64_t>(-static_cast<uint64_t>(x)))
RF_FUNCTION(Abs, int64_t, int64_t, (x < 0 ? Neg::of(x) : x))
RF_FUNCTION(Sign, int64_t, int64_t, ((x > 0) - (x < 0)))
RF_FUNCTION(SignUnsigned, int64_t, int64_t, (x != 0))
RF_FUNCTION(Same, int64_t, int64_t, x)
RF_FUNCTION(BitNot, int64_t, int64_t, ~x)
RF_FUNCTION(WrapI8, int64_t, int64_t, static_cast<int8_t>(x))
RF_FUNCTION(WrapI16, int64_t, int64_t, static_cast<int16_t>(x))
RF_FUNCTION(WrapI32, int64_t, int64_t, static_cast<int32_t>(x))
RF_FUNCTION(WrapU8, int64_t, int64_t, static_cast<uint8_t>(x))
RF_FUNCTION(WrapU16, int64_t, int64_t, static_cast<uint16_t>(x))
RF_FUNCTION(WrapU32, int64_t, int64_t, static_cast<uint32_t>(x))
RF_FUNCTION(WrapI4, int64_t, int64_t, ((x & 15) ^ 8) - 8)
RF_FUNCTION(WrapU4, int64_t, int64_t, (x & 15))
RF_FUNCTION(WrapI2, int64_t, int64_t, ((x & 3) ^ 2) - 2)
RF_FUNCTION(WrapU2, int64_t, int64_t, (x & 3))
RF_FUNCTION(Never, uint8_t, int64_t, (x & 0))
RF_FUNCTION(Not, uint8_t, uint8_t, (x == 0))
RF_FUNCTION(SameBool, uint8_t, uint8_t, x)

}  // namespace

// Operations that are the same for signed and unsigned words.
static void add_words(UnaryFn* row) {
  add_unary<int64_t, Neg>(row, UnaryOp::Neg);
  add_unary<int64_t, Same>(row, UnaryOp::Floor);
  add_unary<int64_t, Same>(row, UnaryOp::Ceil);
  add_unary<int64_t, Same>(row, UnaryOp::Round);
  add_unary<int64_t, BitNot>(row, UnaryOp::BitNot);
  add_unary<int64_t, Never>(row, UnaryOp::IsNaN);
  add_unary<int64_t, Never>(row, UnaryOp::IsPosInf);
  add_unary<int64_t, Never>(row, UnaryOp::IsNegInf);
}

void add_unary_integer(KernelTable& table) {
  UnaryFn* row = table.unary[static_cast<int>(Elem::I64)];
  add_words(row);
  add_unary<int64_t, Abs>(row, UnaryOp::Abs);
  add_unary<int64_t, Sign>(row, UnaryOp::Sign);
  add_unary<int64_t, WrapI8>(row, UnaryOp::WrapI8);
  add_unary<int64_t, WrapI16>(row, UnaryOp::WrapI16);
  add_unary<int64_t, WrapI32>(row, UnaryOp::WrapI32);
  add_unary<int64_t, WrapU8>(row, UnaryOp::WrapU8);
  add_unary<int64_t, WrapU16>(row, UnaryOp::WrapU16);
  add_unary<int64_t, WrapU32>(row, UnaryOp::WrapU32);
  add_unary<int64_t, WrapI4>(row, UnaryOp::WrapI4);
  add_unary<int64_t, WrapU4>(row, UnaryOp::WrapU4);
  add_unary<int64_t, WrapI2>(row, UnaryOp::WrapI2);
  add_unary<int64_t, WrapU2>(row, UnaryOp::WrapU2);
  UnaryFn* without_sign = table.unary[static_cast<int>(Elem::U64)];
  add_words(without_sign);
  add_unary<int64_t, Same>(without_sign, UnaryOp::Abs);
  add_unary<int64_t, SignUnsigned>(without_sign, UnaryOp::Sign);
  UnaryFn* logic = table.unary[static_cast<int>(Elem::Bool)];
  add_unary<uint8_t, Not>(logic, UnaryOp::Not);
  add_unary<uint8_t, SameBool>(logic, UnaryOp::Abs);
  add_unary<uint8_t, SameBool>(logic, UnaryOp::Sign);
}

}  // namespace redfuser::cpu::RF_ISA
