// The instruction of running reductions.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/integers.h"
#include "cpu/tile/tile_instructions.h"

namespace redfuser::cpu {

RunningFold::RunningFold(const cascade::Running& running, int64_t run_length, RegisterId out,
                         RegisterId a)
    : reduction(running.reduce->reduction),
      reverse(running.reverse),
      exclusive(running.exclusive),
      length(run_length) {
  reads = {a};
  writes = {out};
  bindable = true;
}

namespace {

template <typename T>
T first_of(ir::Reduction reduction) {
  using Limits = std::numeric_limits<T>;
  if (reduction == ir::Reduction::Sum) return T(0);
  if (reduction == ir::Reduction::Prod) return T(1);
  const T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  return reduction == ir::Reduction::Max ? lowest : largest;
}

// NaN stays.
template <ir::Reduction reduction, typename T>
T folded(T total, T x) {
  if constexpr (reduction == ir::Reduction::Sum) return wrapping_sum(total, x);
  if constexpr (reduction == ir::Reduction::Prod) return wrapping_product(total, x);
  if (total != total) return total;
  if constexpr (reduction == ir::Reduction::Max) return x > total || x != x ? x : total;
  return x < total || x != x ? x : total;
}

template <typename T>
using TotalOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

template <ir::Reduction reduction, typename T>
void run_columns(TileContext& machine, const RunningFold& op) {
  using Total = TotalOf<T>;
  const Extents e = extents_of(machine, info(machine, op.writes[0]));
  for (int64_t r = 0; r < e.rows; ++r) {
    const T* x = reinterpret_cast<const T*>(row_address(machine, op.reads[0], r));
    T* out = reinterpret_cast<T*>(row_address(machine, op.writes[0], r));
    Total total = first_of<Total>(reduction);
    for (int64_t i = 0; i < e.columns; ++i) {
      const int64_t at = op.reverse ? e.columns - 1 - i : i;
      const Total next = folded<reduction>(total, static_cast<Total>(x[at]));
      out[at] = static_cast<T>(op.exclusive ? total : next);
      total = next;
    }
  }
}

// One row of a run: totals of its columns go on.
template <ir::Reduction reduction, typename T>
void run_row(const T* x, T* out, TotalOf<T>* totals, int64_t columns, bool exclusive) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr auto op = static_cast<int>(reduce_op(reduction));
    return kernels().running_f32[op](columns, x, exclusive, totals, out);
  }
  // `out` may be `x`, whose elements are read before they are written.
#pragma GCC ivdep
  for (int64_t c = 0; c < columns; ++c) {
    const TotalOf<T> total = totals[c];
    const TotalOf<T> next = folded<reduction>(total, static_cast<TotalOf<T>>(x[c]));
    totals[c] = next;
    out[c] = static_cast<T>(exclusive ? total : next);
  }
}

template <ir::Reduction reduction, typename T>
void run_rows(TileContext& machine, const RunningFold& op) {
  constexpr int64_t kTogether = 1024;  // columns whose totals stay in the L1 cache
  const Extents e = extents_of(machine, info(machine, op.writes[0]));
  std::array<TotalOf<T>, kTogether> totals;
  for (int64_t first = 0; first < e.rows; first += op.length) {
    for (int64_t column = 0; column < e.columns; column += kTogether) {
      const int64_t columns = std::min(kTogether, e.columns - column);
      std::fill_n(totals.begin(), columns, first_of<TotalOf<T>>(op.reduction));
      for (int64_t i = 0; i < op.length; ++i) {
        const int64_t row = first + (op.reverse ? op.length - 1 - i : i);
        run_row<reduction>(
            reinterpret_cast<const T*>(row_address(machine, op.reads[0], row)) + column,
            reinterpret_cast<T*>(row_address(machine, op.writes[0], row)) + column, totals.data(),
            columns, op.exclusive);
      }
    }
  }
}

template <ir::Reduction reduction, typename T>
void run_along(TileContext& machine, const RunningFold& op) {
  return op.length > 0 ? run_rows<reduction, T>(machine, op)
                       : run_columns<reduction, T>(machine, op);
}

template <typename T>
void run_type(TileContext& machine, const RunningFold& op) {
  switch (op.reduction) {
    case ir::Reduction::Sum:
      return run_along<ir::Reduction::Sum, T>(machine, op);
    case ir::Reduction::Prod:
      return run_along<ir::Reduction::Prod, T>(machine, op);
    case ir::Reduction::Max:
      return run_along<ir::Reduction::Max, T>(machine, op);
    default:
      return run_along<ir::Reduction::Min, T>(machine, op);
  }
}

}  // namespace

void RunningFold::run(TileContext& machine) const {
  switch (info(machine, reads[0]).elem) {
    case Elem::F32:
      return run_type<float>(machine, *this);
    case Elem::F64:
      return run_type<double>(machine, *this);
    case Elem::I32:
      return run_type<int32_t>(machine, *this);
    case Elem::I64:
      return run_type<int64_t>(machine, *this);
    case Elem::U64:
      return run_type<uint64_t>(machine, *this);
    case Elem::Bool:
      internal_error("booleans do not run along an axis");
  }
}

}  // namespace redfuser::cpu
