// Where sums of 8-bit integers become 8-bit integers again.
#pragma once

#include <optional>
#include <vector>

#include "cpu/opaque/image/sums.h"
#include "cpu/opaque/opaque.h"
#include "cpu/simd/integers/integer_gemm.h"

namespace redfuser::cpu {

// saturate(round(sum · scale + offset) + zero) for each filter.
struct QuantizedRows {
  IntegerQuantizeArgs each;             // zero, low and high
  std::vector<double> scales, offsets;  // of each filter, or one of all

  // The arguments of a block's rows of sums at `place`, without their output.
  IntegerQuantizeArgs of(const SumsTarget::Block& block, const SumsTarget::Place& place) const;
};

// What follows the quantisation of sums: a function of their codes, table[code] of codes as
// unsigned bytes, or a second quantisation of them and others.
struct QuantizedRestArgs {
  const uint8_t* table = nullptr;
  std::optional<IntegerResidual> residual;
};

class QuantizedSums final : public SumsTarget {
 public:
  // `y` [batch, filters, positions], as the residual's bytes, if there is one; `rows` and the
  // table must outlive this.
  QuantizedSums(void* y, int64_t filters, int64_t positions, const QuantizedRows& rows, int workers,
                const QuantizedRestArgs& rest = {})
      : y_(static_cast<uint8_t*>(y)),
        filters_(filters),
        positions_(positions),
        rows_(rows),
        rest_(rest),
        workers_(static_cast<size_t>(workers)) {}

  Place place(int worker, const Block& block) override {
    return wide_place(worker, block, block.positions);
  }
  Place wide_place(int worker, const Block& block, int64_t stride) override;
  void done(int worker, const Block& block, const Place& place) override;

 private:
  struct Sums {
    ScratchArray<int32_t> data;
    int64_t count = 0;
  };

  uint8_t* y_;
  int64_t filters_, positions_;
  const QuantizedRows& rows_;
  const QuantizedRestArgs rest_;
  std::vector<Sums> workers_;
};

}  // namespace redfuser::cpu
