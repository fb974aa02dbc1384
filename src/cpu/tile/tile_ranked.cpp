// Instructions of the ranked reductions: ArgMax, ArgMin, TopK, BottomK.
#include <algorithm>
#include <cmath>

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

// Inserts each element after equal ones, since elements arrive in order of index.
template <typename T>
void keep_row(const T* x, int64_t columns, int64_t first, int64_t keep, bool largest, T* values,
              int64_t* indices) {
  int64_t filled = std::min(first, keep);
  for (int64_t c = 0; c < columns; ++c) {
    if (filled == keep && !better(x[c], values[keep - 1], largest)) continue;
    int64_t place = filled < keep ? filled++ : keep - 1;
    for (; place > 0 && better(x[c], values[place - 1], largest); --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = x[c];
    indices[place] = first + c;
  }
}

template <typename T>
void keep_rows(TileContext& machine, const KeepBest& op) {
  const auto& columns = machine.columns[static_cast<size_t>(info(machine, op.reads[0]).scope)];
  const int64_t rows = has_rows(info(machine, op.writes[0]).shape) ? machine.rows.count : 1;
  for (int64_t r = 0; r < rows; ++r) {
    keep_row(reinterpret_cast<const T*>(row_address(machine, op.reads[0], r)), columns.count,
             columns.begin, op.keep, op.largest,
             reinterpret_cast<T*>(row_address(machine, op.writes[0], r)),
             reinterpret_cast<int64_t*>(row_address(machine, op.writes[1], r)));
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
