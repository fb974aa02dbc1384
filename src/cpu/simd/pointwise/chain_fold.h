// Rows of chains of float32 that are folded (ChainFolds).
#pragma once

#include "cpu/simd/combine.h"
#include "cpu/simd/pointwise/chain_run.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Maximum, minimum and sum of a row's elements so far. A long row is summed in parts, so that
// rounding errors stay small.
struct RowFold {
  using V = Vector<float>;
  static constexpr int64_t kPart = 2048;  // elements
  bool extremes = false, sum = false;
  V greatest = -__builtin_inff() - V{}, least = __builtin_inff() - V{};
  V total{}, part{};
  int64_t in_part = 0;
  NaNs nans{};

  template <int NV>
  RF_INLINE void add(const V* v) {
    if (extremes) add_extremes<NV>(v);
    if (!sum) return;
    part += sum_of<NV>(v);
    in_part += NV * VectorOf<float>::kWidth;
    if (in_part < kPart) return;
    total += part;
    part = V{};
    in_part = 0;
  }

  // Adds the first or the last `count` lanes of `v` to the sum. The other lanes repeat elements of
  // the row, which leaves the extremes as they are.
  RF_INLINE void add_part(const V& v, int64_t count, bool last) {
    constexpr int64_t W = VectorOf<float>::kWidth;
    if (extremes) add_extremes<1>(&v);
    if (!sum) return;
    Vector<int32_t> lanes;
    for (int l = 0; l < W; ++l) lanes[l] = l;
    const auto kept =
        last ? lanes >= static_cast<int32_t>(W - count) : lanes < static_cast<int32_t>(count);
    part += kept ? v : V{};
  }

  // Joins the accumulators of row r.
  RF_INLINE void finish(const ChainFolds& to, int64_t r) const {
    const bool nan = nans.found();
    if (to.greatest != nullptr) {
      const float x = nan ? __builtin_nanf("") : combined_lanes<MaxOfNumbers, float>(greatest);
      to.greatest[r] = Max::of(to.greatest[r], x);
    }
    if (to.least != nullptr) {
      const float x = nan ? __builtin_nanf("") : combined_lanes<MinOfNumbers, float>(least);
      to.least[r] = Min::of(to.least[r], x);
    }
    if (to.sum != nullptr) to.sum[r] += combined_lanes<Sum, float>(total + part);
  }

 private:
  template <int NV>
  static RF_INLINE V sum_of(const V* v) {
    if constexpr (NV == 1) return v[0];
    return sum_of<(NV + 1) / 2>(v) + sum_of<(NV + 1) / 2>(v + NV / 2);
  }
  template <int NV, class Combine>
  static RF_INLINE V extreme_of(const V* v) {
    if constexpr (NV == 1) return v[0];
    return extreme(Combine{}, extreme_of<(NV + 1) / 2, Combine>(v),
                   extreme_of<(NV + 1) / 2, Combine>(v + NV / 2));
  }

  template <int NV>
  RF_INLINE void add_extremes(const V* v) {
    greatest = extreme(Max{}, extreme_of<NV, Max>(v), greatest);
    least = extreme(Min{}, extreme_of<NV, Min>(v), least);
    each_vector<(NV + 1) / 2>(
        [&](auto j) RF_INLINED { nans.add(v[2 * j], v[2 * j + 1 < NV ? 2 * j + 1 : 2 * j]); });
  }
};

template <int NV, bool kFunctions>
RF_INLINE void fold_chain(const Row<float>& row, int64_t c, char* out, RowFold& fold) {
  Vector<float> v[NV];
  run_steps<float, NV, kFunctions>(row, c, v);
  if (out != nullptr) store_typed<float, NV>(out + c * row.out_bytes, v, row.out_type, 0);
  fold.add<NV>(v);
}

template <int NV, bool kFunctions>
RF_INLINE int64_t fold_vectors(const Row<float>& row, int64_t c, int64_t cols, char* out,
                               RowFold& fold) {
  constexpr int64_t W = VectorOf<float>::kWidth;
  for (; c + NV * W <= cols; c += NV * W) fold_chain<NV, kFunctions>(row, c, out, fold);
  if constexpr (NV > 1) c = fold_vectors<NV / 2, kFunctions>(row, c, cols, out, fold);
  return c;
}

// A row that is shorter than a vector.
template <bool kFunctions>
RF_INLINE void fold_short(const Row<float>& row, int64_t cols, char* out, RowFold& fold) {
  Vector<float> v[1];
  load_typed<float, 0>(v, row.first, row.first_type, cols);
  for (int i = 0; i < row.count; ++i) run_step<float, 0, kFunctions>(v, row.steps[i], 0, cols);
  if (out != nullptr) store_typed<float, 0>(out, v, row.out_type, cols);
  for (int64_t l = cols; l < VectorOf<float>::kWidth; ++l) v[0][l] = v[0][0];
  fold.add_part(v[0], cols, false);
}

// `out` is null where only the folds are wanted, else not the memory of an operand. The last vector
// overlaps those before.
template <bool kFunctions>
__attribute__((noinline)) void fold_row(const Row<float>& row, int64_t cols, char* out,
                                        const ChainFolds& folds, int64_t r) {
  constexpr int64_t W = VectorOf<float>::kWidth;
  RowFold fold{folds.greatest != nullptr || folds.least != nullptr, folds.sum != nullptr};
  if (cols < W) {
    fold_short<kFunctions>(row, cols, out, fold);
    return fold.finish(folds, r);
  }
  if (cols < kShortVectors * W && !fold.sum) {
    Vector<float> v[kShortVectors];
    load_short(row, cols, v);
    for (int i = 0; i < row.count; ++i) run_short<kFunctions>(row.steps[i], cols, v);
    if (out != nullptr) store_short(row, cols, v, out);
    fold.add<kShortVectors>(v);
    return fold.finish(folds, r);
  }
  const int64_t c = fold_vectors<kVectors, kFunctions>(row, 0, cols, out, fold);
  if (c < cols) {
    Vector<float> v[1];
    run_steps<float, 1, kFunctions>(row, cols - W, v);
    if (out != nullptr) store_typed<float, 1>(out + (cols - W) * row.out_bytes, v, row.out_type, 0);
    fold.add_part(v[0], cols - c, true);
  }
  fold.finish(folds, r);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
