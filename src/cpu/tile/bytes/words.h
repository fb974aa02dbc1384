// Elements that a step only moves: their bits stay as they are, whatever their type. Registers hold
// them in the class of as many bytes, and no store or load converts them.
#pragma once

#include "cpu/simd/kernel_table.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// Whether registers hold elements of a type otherwise than memory does, in one byte or four.
bool has_words(DType dtype);
// The class of registers for the bits of such a type: Bool of one byte, I32 of four.
Elem word_elem(DType dtype);

// Whether an expression only moves elements of such a type: reads, choices between them, the
// greater and the lesser of 8 bits, constants of integers, casts between integers of as many bits,
// and of truth values to 8 bits.
bool moves_words(ir::Expr expr);

// Bytes of a type of 8 bits as unsigned ones in the order of their values, and back: a register
// that a TileBuilder makes.
template <class Builder, class Register>
Register ordered_bytes(Builder& builder, Register bytes, DType dtype) {
  constexpr int64_t kSign = 0x80;
  if (dtype != DType::Int8) return bytes;
  return builder.binary(BinaryOp::BitXor, bytes, builder.constant(Elem::Bool, 0, kSign));
}

// Copies `count` elements of so many bytes: 1 or 4.
ConvertFn copy_words(size_t bytes);

}  // namespace redfuser::cpu
