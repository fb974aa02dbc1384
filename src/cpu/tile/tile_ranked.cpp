// Instructions of the ranked reductions: ArgMax, ArgMin, TopK, BottomK.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "cpu/tile/tile_instructions.h"

namespace redfuser::cpu {

KeepBest::KeepBest(bool largest, int64_t keep, RegisterId values, RegisterId indices, RegisterId a)
    : largest(largest), keep(keep) {
  reads = {a, values, indices};
  writes = {values, indices};
}

namespace {

template <typename T>
bool better(T a, T b, bool largest) {
  if (a != a) return b == b;  // NaN before every number
  if (b != b) return false;
  return largest ? a > b : a < b;
}

// A row's elements, and where the first one stands among all.
template <typename T>
struct RankedRow {
  const T* x;
  int64_t columns, first, keep;
  bool largest;
  RankFn next;
  ReduceFn fold;  // the greatest or the least

  // The first element from `c` on that comes before the last of a full list.
  int64_t next_from(int64_t c, const T* values) const {
    return next(x, c, columns, values + keep - 1, largest);
  }
};

// Inserts each element after equal ones, since elements arrive in order of index.
template <typename T>
void keep_row(const RankedRow<T>& row, T* values, int64_t* indices) {
  int64_t filled = std::min(row.first, row.keep);
  for (int64_t c = 0; c < row.columns; ++c) {
    if (filled == row.keep) {
      c = row.next_from(c, values);
      if (c == row.columns) break;
    }
    const T x = row.x[c];
    int64_t place = filled < row.keep ? filled++ : row.keep - 1;
    for (; place > 0 && better(x, values[place - 1], row.largest); --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = x;
    indices[place] = row.first + c;
  }
}

template <typename T>
struct Ranked {
  T value;
  int64_t index;
};

// Sorts the elements that may enter the list and merges them with it.
template <typename T>
void merge_row(const RankedRow<T>& row, T* values, int64_t* indices) {
  thread_local std::vector<Ranked<T>> found, merged;
  const int64_t keep = row.keep, filled = std::min(row.first, keep);
  const bool largest = row.largest;
  const auto before = [&](const Ranked<T>& a, const Ranked<T>& b) {
    if (better(a.value, b.value, largest)) return true;
    return !better(b.value, a.value, largest) && a.index < b.index;
  };
  found.clear();
  for (int64_t c = 0; c < row.columns; ++c) {
    if (filled == keep) c = row.next_from(c, values);
    if (c < row.columns) found.push_back({row.x[c], row.first + c});
  }
  if (found.empty()) return;
  if (static_cast<int64_t>(found.size()) > keep) {
    std::nth_element(found.begin(), found.begin() + keep, found.end(), before);
    found.resize(static_cast<size_t>(keep));
  }
  std::sort(found.begin(), found.end(), before);
  merged.resize(std::min(static_cast<size_t>(keep), static_cast<size_t>(filled) + found.size()));
  size_t next = 0;
  int64_t place = 0;
  for (Ranked<T>& to : merged) {
    const bool fresh = place == filled ||
                       (next < found.size() && better(found[next].value, values[place], largest));
    if (fresh) {
      to = found[next++];
    } else {
      to = {values[place], indices[place]};
      ++place;
    }
  }
  for (size_t i = 0; i < merged.size(); ++i) {
    values[i] = merged[i].value;
    indices[i] = merged[i].index;
  }
}

// The first of the elements that equal the greatest, or the least, of all; the first NaN where it
// is one.
template <typename T>
int64_t place_of(const RankedRow<T>& row, T extreme) {
  using Limits = std::numeric_limits<T>;
  const T end = row.largest ? Limits::lowest() : Limits::max();
  T bound = extreme;  // the next one behind it
  if constexpr (std::is_floating_point_v<T>) {
    const T infinity = row.largest ? -Limits::infinity() : Limits::infinity();
    if (extreme == infinity) return 0;
    bound = extreme != extreme ? -infinity : std::nextafter(extreme, infinity);
  } else {
    if (extreme == end) return 0;
    bound = static_cast<T>(row.largest ? extreme - 1 : extreme + 1);
  }
  return row.next(row.x, 0, row.columns, &bound, row.largest);
}

// A list of one element.
template <typename T>
void keep_one(const RankedRow<T>& row, T* value, int64_t* index) {
  if (row.columns == 0) return;
  T extreme = row.x[0];
  row.fold(1, row.columns, &extreme, {row.x});
  if (row.first > 0 && !better(extreme, *value, row.largest)) return;
  *value = extreme, *index = row.first + place_of(row, extreme);
}

template <typename T>
void keep_rows(TileContext& machine, const KeepBest& op) {
  const auto& columns = machine.columns[static_cast<size_t>(info(machine, op.reads[0]).scope)];
  const int64_t rows = has_rows(info(machine, op.writes[0]).shape) ? machine.rows.count : 1;
  const auto elem = static_cast<int>(info(machine, op.reads[0]).elem);
  const RankFn next = kernels().next_before[elem];
  const ReduceFn fold =
      kernels().reduce[elem][static_cast<int>(op.largest ? ReduceOp::Max : ReduceOp::Min)];
  auto rank = op.merges ? merge_row<T> : keep_row<T>;
  if (op.keep == 1) rank = keep_one<T>;
  const Operand from = operand(machine, op.reads[0], Shape::Tile);
  const Operand values = operand(machine, op.writes[0], Shape::Tile);
  const Operand indices = operand(machine, op.writes[1], Shape::Tile);
  const auto at = [](const Operand& o, int64_t r) {
    return o.offsets ? o.offsets[r] : r * o.stride;
  };
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = static_cast<const T*>(from.data) + at(from, r);
    rank({x, columns.count, columns.begin, op.keep, op.largest, next, fold},
         static_cast<T*>(const_cast<void*>(values.data)) + at(values, r),
         static_cast<int64_t*>(const_cast<void*>(indices.data)) + at(indices, r));
  }
}

}  // namespace

void KeepBest::run(TileContext& machine) const {
  if (keep <= 0) return;
  switch (info(machine, reads[0]).elem) {
    case Elem::F32:
      return keep_rows<float>(machine, *this);
    case Elem::F64:
      return keep_rows<double>(machine, *this);
    case Elem::I32:
      return keep_rows<int32_t>(machine, *this);
    case Elem::I64:
      return keep_rows<int64_t>(machine, *this);
    case Elem::U64:
      return keep_rows<uint64_t>(machine, *this);
    case Elem::Bool:
      return keep_rows<uint8_t>(machine, *this);
  }
}

TakeColumn::TakeColumn(RegisterId out, RegisterId source, RegisterId index, int64_t filled)
    : filled(filled) {
  reads = {source, index};
  writes = {out};
}

namespace {

template <typename T>
void take(TileContext& machine, const TakeColumn& op) {
  const Register& to = info(machine, op.writes[0]);
  const Extents e = extents_of(machine, to);
  const Shape index_shape = info(machine, op.reads[1]).shape;
  const bool along_rows = to.shape == Shape::Rows;
  for (int64_t r = 0; r < e.rows; ++r) {
    T* out = reinterpret_cast<T*>(row_address(machine, op.writes[0], r));
    const Operand index = operand(machine, op.reads[1], to.shape);
    const int64_t offset = index.offsets ? index.offsets[r] : r * index.stride;
    const int64_t* rank = static_cast<const int64_t*>(index.data) + offset;
    const int64_t step = is_vector(index_shape, to.shape) ? 1 : 0;
    for (int64_t c = 0; c < e.columns; ++c) {
      const int64_t i = rank[c * step];
      const T* source =
          reinterpret_cast<const T*>(row_address(machine, op.reads[0], along_rows ? c : r));
      out[c] = i >= 0 && i < op.filled ? source[i] : T{};
    }
  }
}

}  // namespace

void TakeColumn::run(TileContext& machine) const {
  switch (size_of(info(machine, writes[0]).elem)) {
    case 1:
      return take<uint8_t>(machine, *this);
    case 4:
      return take<float>(machine, *this);
    default:
      return take<int64_t>(machine, *this);
  }
}

}  // namespace redfuser::cpu
