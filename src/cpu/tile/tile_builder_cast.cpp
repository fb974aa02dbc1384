// Conversions of tile programs between types, and integers wrapped around within theirs.
#include <algorithm>

#include "cpu/tile/bytes/low_bit_convert.h"
#include "cpu/tile/bytes/words.h"
#include "cpu/tile/interval.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

RegisterId TileBuilder::wrapped(RegisterId r, DType dtype) {
  switch (dtype) {
    case DType::Int8:
      return unary(UnaryOp::WrapI8, r, Elem::I32);
    case DType::Int16:
      return unary(UnaryOp::WrapI16, r, Elem::I32);
    case DType::UInt8:
      return unary(UnaryOp::WrapU8, r, Elem::I32);
    case DType::UInt16:
      return unary(UnaryOp::WrapU16, r, Elem::I32);
    case DType::UInt32:
      return unary(UnaryOp::WrapU32, r, Elem::I64);
    case DType::Int4:
      return unary(UnaryOp::WrapI4, r, Elem::I32);
    case DType::UInt4:
      return unary(UnaryOp::WrapU4, r, Elem::I32);
    case DType::Int2:
      return unary(UnaryOp::WrapI2, r, Elem::I32);
    case DType::UInt2:
      return unary(UnaryOp::WrapU2, r, Elem::I32);
    default:
      return r;
  }
}

namespace {

// Whether float32 has every value of an int32 expression.
bool is_exact(ir::Expr expr) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const Interval range = interval_of(expr);
  return range.low >= -kMost && range.high <= kMost;
}

// Whether sums and differences of int32 may be those of float32.
bool sums_exactly(ir::Expr expr) {
  const bool sum = expr->op == ir::ExprOp::Add || expr->op == ir::ExprOp::Sub;
  return sum && expr->dtype == DType::Int32 && is_exact(expr) &&
         std::all_of(expr->args.begin(), expr->args.end(), is_exact);
}

}  // namespace

RegisterId TileBuilder::build_exact_sum(ir::Expr expr) {
  const auto floating = [&](ir::Expr e) {
    return sums_exactly(e) ? build_exact_sum(e) : converted(compile(e), Elem::F32);
  };
  const BinaryOp op = expr->op == ir::ExprOp::Add ? BinaryOp::Add : BinaryOp::Sub;
  RegisterId result = floating(expr->args[0]);
  for (size_t i = 1; i < expr->args.size(); ++i)
    result = binary(op, result, floating(expr->args[i]));
  return result;
}

RegisterId TileBuilder::build_cast(ir::Expr cast) {
  ir::Expr from = cast->args[0];
  if (is_low_bit_float(cast->dtype) || is_low_bit_float(from->dtype)) {
    return build_low_bit_cast(cast);
  }
  if (cast->dtype == DType::Float32 && sums_exactly(from)) return build_exact_sum(from);
  const bool wraps = is_integer(from->dtype) && is_integer(cast->dtype) &&
                     bits_of(cast->dtype) <= bits_of(from->dtype);
  RegisterId r = converted(wraps ? compile_modular(from) : compile(from), elem_of(cast->dtype));
  if (cast->dtype == from->dtype) return r;
  if (cast->dtype == DType::Float16) return unary(UnaryOp::RoundHalf, r, info(r).elem);
  if (cast->dtype == DType::BFloat16) return unary(UnaryOp::RoundBFloat, r, info(r).elem);
  if (!is_integer(cast->dtype)) return r;
  return is_float(from->dtype) || may_overflow(cast) ? wrapped(r, cast->dtype) : r;
}

// Values of low-bit floats are their codes; between two of them the value goes through float.
RegisterId TileBuilder::build_low_bit_cast(ir::Expr cast) {
  const DType to = cast->dtype, from = cast->args[0]->dtype;
  RegisterId r = compile(cast->args[0]);
  if (to == from) return r;
  if (is_low_bit_float(from)) {
    const RegisterId a = r;
    r = make(Elem::F32, info(a).shape, info(a).scope, info(a).depth);
    emit(std::make_unique<Convert>(decoder_of(from), r, a), info(a).depth);
  }
  if (!is_low_bit_float(to)) return wrapped(converted(r, elem_of(to)), to);
  const RegisterId a = converted(r, Elem::F32);
  r = make(Elem::I64, info(a).shape, info(a).scope, info(a).depth);
  emit(std::make_unique<Convert>(encoder_of(to), r, a), info(a).depth);
  return r;
}

RegisterId TileBuilder::compile_words(ir::Expr expr) {
  for (size_t d = stack_.size(); d-- > 0;) {
    auto found = stack_[d].words.find(expr);
    if (found != stack_[d].words.end()) return found->second;
  }
  RegisterId r = kNoRegister;
  if (expr->op == ir::ExprOp::Read) {
    r = build_read(expr, true);
  } else if (expr->op == ir::ExprOp::Constant) {
    r = constant(word_elem(expr->dtype), 0, expr->integer);
  } else if (expr->op == ir::ExprOp::Cast) {
    const ir::Expr from = expr->args[0];
    r = from->dtype == DType::Bool ? converted(compile(from), Elem::Bool) : compile_words(from);
  } else if (expr->op == ir::ExprOp::Max || expr->op == ir::ExprOp::Min) {
    const BinaryOp op = expr->op == ir::ExprOp::Max ? BinaryOp::Max : BinaryOp::Min;
    const RegisterId a = ordered_bytes(*this, compile_words(expr->args[0]), expr->dtype);
    const RegisterId b = ordered_bytes(*this, compile_words(expr->args[1]), expr->dtype);
    r = ordered_bytes(*this, binary(op, a, b), expr->dtype);
  } else {
    const RegisterId a = compile_words(expr->args[1]), b = compile_words(expr->args[2]);
    r = select(converted(compile(expr->args[0]), Elem::Bool), a, b);
  }
  stack_[static_cast<size_t>(info(r).depth)].words[expr] = r;
  return r;
}

}  // namespace redfuser::cpu
