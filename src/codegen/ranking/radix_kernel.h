// The kernels of a radix sort (src/device/ranking/ranking_radix.cuh).
#pragma once

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// A form whose only accumulator is ranked, and how its rows are sorted.
struct RadixForm {
  const FlatStreaming& rows;
  int first;     // the lowest bit of a key that elements may differ in, down to a multiple of 8
  int key_bits;  // 32 or 64

  const cascade::Accumulator& accumulator() const { return rows.accumulators.front(); }
  int key_bytes() const { return key_bits / 8; }
  int passes() const { return (key_bits - first) / 8; }
  // Elements of a thread in a tile of a pass, and of the counts.
  int elements() const { return key_bits == 64 ? 8 : 16; }
  static constexpr int kThreads = 256;  // one for every digit
  static constexpr int kCountedElements = 32;
  int64_t tile() const { return int64_t{kThreads} * elements(); }
};
RadixForm radix_form(const FlatStreaming& rows);

// Scratch buffers, by number: `numbers` are 0 at the start; keys and positions of alternate passes.
struct RadixScratch {
  int64_t numbers = -1;
  int64_t keys[2] = {-1, -1}, positions[2] = {-1, -1};
};
// Elements of `numbers`.
ir::Expr radix_numbers(ir::ExprPool& pool, const RadixForm& form);

KernelLaunch radix_count_kernel(StepBuilder& builder, const RadixForm& form,
                                const RadixScratch& scratch);
KernelLaunch radix_pass_kernel(StepBuilder& builder, const RadixForm& form,
                               const RadixScratch& scratch, int pass);

}  // namespace redfuser::codegen
