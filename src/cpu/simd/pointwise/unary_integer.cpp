#include "cpu/simd/pointwise/unary.h"

namespace redfuser::cpu::RF_ISA {
namespace {

#define RF_INTEGER_FUNCTION(NAME, EXPRESSION)              \
  template <class T>                                       \
  struct NAME {                                            \
    static RF_INLINE auto of(T x) { return (EXPRESSION); } \
  };

// Negation wraps, as two's complement does.
RF_INTEGER_FUNCTION(Neg, static_cast<T>(-static_cast<uint64_t>(x)))
RF_INTEGER_FUNCTION(Abs, x < 0 ? Neg<T>::of(x) : x)
RF_INTEGER_FUNCTION(Sign, static_cast<T>((x > 0) - (x < 0)))
RF_INTEGER_FUNCTION(SignUnsigned, static_cast<T>(x != 0))
RF_INTEGER_FUNCTION(Same, x)
RF_INTEGER_FUNCTION(BitNot, static_cast<T>(~x))
RF_INTEGER_FUNCTION(WrapI8, static_cast<T>(static_cast<int8_t>(x)))
RF_INTEGER_FUNCTION(WrapI16, static_cast<T>(static_cast<int16_t>(x)))
RF_INTEGER_FUNCTION(WrapU8, static_cast<T>(static_cast<uint8_t>(x)))
RF_INTEGER_FUNCTION(WrapU16, static_cast<T>(static_cast<uint16_t>(x)))
RF_INTEGER_FUNCTION(WrapU32, static_cast<T>(static_cast<uint32_t>(x)))
RF_INTEGER_FUNCTION(WrapI4, static_cast<T>(((x & 15) ^ 8) - 8))
RF_INTEGER_FUNCTION(WrapU4, static_cast<T>(x & 15))
RF_INTEGER_FUNCTION(WrapI2, static_cast<T>(((x & 3) ^ 2) - 2))
RF_INTEGER_FUNCTION(WrapU2, static_cast<T>(x & 3))
RF_INTEGER_FUNCTION(Never, static_cast<uint8_t>(x & 0))
RF_FUNCTION(Not, uint8_t, uint8_t, (x == 0))
RF_FUNCTION(SameBool, uint8_t, uint8_t, x)

// Operations that are the same for signed and unsigned words.
template <class T>
void add_words(UnaryFn* row) {
  add_unary<T, Neg<T>>(row, UnaryOp::Neg);
  add_unary<T, Same<T>>(row, UnaryOp::Floor);
  add_unary<T, Same<T>>(row, UnaryOp::Ceil);
  add_unary<T, Same<T>>(row, UnaryOp::Round);
  add_unary<T, BitNot<T>>(row, UnaryOp::BitNot);
  add_unary<T, Never<T>>(row, UnaryOp::IsNaN);
  add_unary<T, Never<T>>(row, UnaryOp::IsPosInf);
  add_unary<T, Never<T>>(row, UnaryOp::IsNegInf);
}

template <class T>
void add_signed(UnaryFn* row) {
  add_words<T>(row);
  add_unary<T, Abs<T>>(row, UnaryOp::Abs);
  add_unary<T, Sign<T>>(row, UnaryOp::Sign);
}

}  // namespace

void add_unary_integer(KernelTable& table) {
  UnaryFn* i64 = table.unary[static_cast<int>(Elem::I64)];
  add_signed<int64_t>(i64);
  add_unary<int64_t, WrapU32<int64_t>>(i64, UnaryOp::WrapU32);
  UnaryFn* i32 = table.unary[static_cast<int>(Elem::I32)];
  add_signed<int32_t>(i32);
  add_unary<int32_t, WrapI8<int32_t>>(i32, UnaryOp::WrapI8);
  add_unary<int32_t, WrapI16<int32_t>>(i32, UnaryOp::WrapI16);
  add_unary<int32_t, WrapU8<int32_t>>(i32, UnaryOp::WrapU8);
  add_unary<int32_t, WrapU16<int32_t>>(i32, UnaryOp::WrapU16);
  add_unary<int32_t, WrapI4<int32_t>>(i32, UnaryOp::WrapI4);
  add_unary<int32_t, WrapU4<int32_t>>(i32, UnaryOp::WrapU4);
  add_unary<int32_t, WrapI2<int32_t>>(i32, UnaryOp::WrapI2);
  add_unary<int32_t, WrapU2<int32_t>>(i32, UnaryOp::WrapU2);
  UnaryFn* without_sign = table.unary[static_cast<int>(Elem::U64)];
  add_words<int64_t>(without_sign);
  add_unary<int64_t, Same<int64_t>>(without_sign, UnaryOp::Abs);
  add_unary<int64_t, SignUnsigned<int64_t>>(without_sign, UnaryOp::Sign);
  UnaryFn* logic = table.unary[static_cast<int>(Elem::Bool)];
  add_unary<uint8_t, Not>(logic, UnaryOp::Not);
  add_unary<uint8_t, SameBool>(logic, UnaryOp::Abs);
  add_unary<uint8_t, SameBool>(logic, UnaryOp::Sign);
}

}  // namespace redfuser::cpu::RF_ISA
