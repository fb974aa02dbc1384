// Matrices of floats that are packed once, and the rows that they are multiplied with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_budget.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// Rows of `depth` elements, the left factor of products. T is float or double.
template <typename T>
class FloatRows {
 public:
  // The rows that are assigned later are of `count` elements at `data`.
  void fit(const T*, int64_t) {}
  // Row i begins at base[offsets[i]]. Rows at equal distances are read in place, and must stay as
  // long as this; others are copied.
  void assign(const T* base, std::span<const int64_t> offsets, int64_t depth);
  const T* row(int64_t i) const { return data_ + i * stride_; }
  int64_t stride() const { return stride_; }

 private:
  const T* data_ = nullptr;
  int64_t stride_ = 0;
  ChargedVector<T> copy_;
};

// A right factor of `depth` rows.
template <typename T>
class FloatMatrix {
 public:
  using Element = T;
  using Rows = FloatRows<T>;
  // The result of a row does not depend on the rows that it is multiplied with.
  static constexpr bool kRowsApart = true;
  static constexpr int64_t kElementBytes = sizeof(T);

  // Element (k, j) is data[columns[j] * depth + k].
  FloatMatrix(const T* data, int64_t depth, std::span<const int64_t> columns);
  // c[count, columns] += rows [first, first + count) times this. Thread-safe.
  void add(const Rows& rows, int64_t first, int64_t count, T* c, int64_t c_stride) const;

 private:
  int64_t depth_, columns_;
  Tensor panels_;
};

}  // namespace redfuser::cpu
