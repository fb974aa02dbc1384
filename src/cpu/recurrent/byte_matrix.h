// Matrices of 8-bit integers that are packed once, and rows of floats that are quantised to be
// multiplied with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_budget.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// A scale and a zero point of uint8 for numbers from `low` to `high`, as DynamicQuantizeLinear
// defines them.
struct ByteRange {
  float scale = 1;
  int32_t zero = 0;
  // Of `count` numbers and 0. The scale is NaN where one of them is.
  static ByteRange of(const float* data, int64_t count);
};

// Rows of uint8 that stand for floats, with one range for all.
class ByteRows {
 public:
  // The rows that are assigned later share the range of `count` elements at `data`. Without it, the
  // rows of an assignment have theirs.
  void fit(const float* data, int64_t count);
  // Row i begins at base[offsets[i]]. Without `fit`, they lie side by side.
  void assign(const float* base, std::span<const int64_t> offsets, int64_t depth);

  const ByteRange& range() const { return range_; }
  const char* row(int64_t i) const { return rows_ + i * stride_; }
  int64_t stride() const { return stride_; }  // bytes
  const int32_t* sums(int64_t i) const { return sums_.data() + i; }

 private:
  ByteRange range_;
  bool fitted_ = false;
  const char* rows_ = nullptr;
  int64_t stride_ = 0;
  ChargedVector<uint8_t> bytes_;
  Tensor packed_;
  ChargedVector<int32_t> sums_;
};

// 8-bit integers with a scale and a zero point for each column.
struct ByteColumns {
  const void* data = nullptr;  // row-major
  DType dtype = DType::Int8;   // or UInt8
  int64_t row_stride = 0;
  const float* scales = nullptr;  // by column, or one
  const void* zeros = nullptr;    // of dtype, likewise
  bool per_column = false;
};

class ByteMatrix {
 public:
  using Element = float;
  using Rows = ByteRows;
  // All rows of a step share a range.
  static constexpr bool kRowsApart = false;
  static constexpr int64_t kElementBytes = 1;

  // Column j is number columns[j] of `from`.
  ByteMatrix(const ByteColumns& from, int64_t depth, std::span<const int64_t> columns);
  // c[count, columns] += rows [first, first + count) times this. Thread-safe.
  void add(const Rows& rows, int64_t first, int64_t count, float* c, int64_t c_stride) const;

 private:
  void add_few(const Rows& rows, int64_t first, int64_t count, float* c, int64_t c_stride) const;

  int64_t depth_, columns_;
  Tensor panels_;
  std::vector<float> scales_;
  std::vector<int32_t> zeros_, terms_;  // of columns: terms as IntegerFinishArgs has them
  bool any_zero_ = false;
};

}  // namespace redfuser::cpu
