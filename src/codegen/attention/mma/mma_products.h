// Products of the portable attention kernels, for operands of any float type up to 32 bits.
//
// Operands of the same 16-bit type are multiplied as they are, others by TF32 in parts
// (device/attention_parts.cuh), or, if all are fp32 and Target::exact_products asks for it, by
// fused multiply-adds. Weights are rounded to a 16-bit type only where the graph does so, or where
// all operands have that type.
#pragma once

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

inline constexpr int kWarpRows = 16;  // of a warp's fragments

// A tile of an operand in shared memory: lines of `columns` elements, padded against bank
// conflicts.
struct MmaOperand {
  int element = 2;   // bytes
  int columns = 0;   // a multiple of 16
  int padding = 16;  // bytes of a line
  int extent = 0;    // columns of the operand

  int bytes(int lines) const { return lines * (columns * element + padding); }
};

class MmaProducts {
 public:
  MmaProducts(const Target& target, const AttentionSpec& form);

  MmaOperand query, key, value;
  // Whether results are as exact as those of 16-bit operands, so fast elementary functions suffice.
  bool rounded() const { return values_ == Kind::Native; }
  // Whether all operands have 16-bit types, of which Q and K have the same.
  bool native() const { return scores_ == Kind::Native && values_ == Kind::Native; }
  // The time of a product relative to one of 16-bit operands.
  int score_work() const { return work(scores_, query.element, key.element); }
  int value_work() const { return work(values_, 4, value.element); }
  // Bytes of the buffer that redistributes a warp's weights of so many keys among its lanes.
  int staged_bytes(int keys) const;

  // The kinds of both products, enumerators of Products (device/attention/mma_tiles.cuh).
  const char* scores() const { return name(scores_); }
  const char* values() const { return name(values_); }
  bool needs_parts() const { return scores_ == Kind::Parts || values_ == Kind::Parts; }

 private:
  enum class Kind { Native, Parts, Scalar };
  static int work(Kind kind, int a, int b);
  static const char* name(Kind kind);
  Kind scores_, values_;
};

}  // namespace redfuser::codegen
