// Where the sums of a convolution go.
#pragma once

#include <cstdint>

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

class SumsTarget {
 public:
  // Positions [position, position + positions) of an image's output, of some filters of all
  // groups'.
  struct Block {
    int64_t batch, filter, position;
    int64_t filters, positions;
  };
  // Memory for the sums of a block: a row for each filter, `stride` elements apart, which are as
  // many as the output has positions where the block has all of them.
  struct Place {
    void* data;
    int64_t stride;
    const void* residual = nullptr;  // where activation() adds it: in the places of `data`
    bool activated = false;          // set by the one who wrote activation() of the sums
  };

  virtual ~SumsTarget() = default;
  // All that becomes of the sums, where it is one; else none.
  virtual Activation activation() const { return {}; }
  // Sums that done() finds in a near cache; 0 where it does not read them.
  virtual int64_t near_sums() const { return 0; }
  // Called before the sums are computed; valid until the worker's next block.
  virtual Place place(int worker, const Block& block) = 0;
  // The same with rows of `stride` elements, the first of which are the block's positions; without
  // data where the sums have a place of their own.
  virtual Place wide_place(int, const Block&, int64_t /*stride*/) { return {nullptr, 0}; }
  // Called once the sums of the block are in their place.
  virtual void done(int worker, const Block& block, const Place& place) = 0;
};

// The sums are the output, a row-major tensor.
class PlainSums final : public SumsTarget {
 public:
  PlainSums(void* y, int64_t width, int64_t filters, int64_t positions)
      : y_(static_cast<char*>(y)), width_(width), filters_(filters), positions_(positions) {}

  Place place(int, const Block& b) override {
    const int64_t at = (b.batch * filters_ + b.filter) * positions_ + b.position;
    return {y_ + at * width_, positions_};
  }
  void done(int, const Block&, const Place&) override {}

 private:
  char* y_;
  int64_t width_, filters_, positions_;  // bytes of an element; sizes of the output
};

}  // namespace redfuser::cpu
