#include "cpu/tile/move_elements.h"

#include <algorithm>

namespace redfuser::cpu {

const int64_t* table(const TileContext& machine, RegisterId r) {
  return r == kNoRegister
             ? nullptr
             : reinterpret_cast<const int64_t*>(machine.slots[static_cast<size_t>(r)].data);
}

int64_t origin(const TileContext& machine, const Access& access, Shape shape, int scope) {
  int64_t offset = access.base.evaluate(machine);
  if (has_rows(shape)) offset += machine.rows.begin * access.row_stride;
  if (has_columns(shape)) {
    offset += machine.columns[static_cast<size_t>(scope)].begin * access.column_stride;
  }
  return offset;
}

Walk walk_of(const TileContext& machine, const Access& access, Shape shape, int scope) {
  Walk w;
  w.origin = origin(machine, access, shape, scope);
  if (has_columns(shape)) {
    w.rows = has_rows(shape) ? machine.rows.count : 1;
    w.columns = machine.columns[static_cast<size_t>(scope)].count;
    w.row_stride = access.row_stride;
    w.row_offsets = table(machine, access.row_offsets);
    w.column_stride = access.column_stride;
    w.column_offsets = table(machine, access.column_offsets);
  } else if (has_rows(shape)) {
    w.columns = machine.rows.count;
    w.column_stride = access.row_stride;
    w.column_offsets = table(machine, access.row_offsets);
  }
  return w;
}

namespace {

// Calls `run` with an element of so many bytes.
template <typename Run>
void dispatch_bytes(size_t bytes, const Run& run) {
  switch (bytes) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    default:
      return run(uint64_t{});
  }
}

// Of the kernels of elements of so many bytes.
int number_of(size_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

const MoveFn& move_of(size_t bytes) { return kernels().move[number_of(bytes)]; }

void move_in_range(const MoveSource& s, const TilePart& p) {
  const Walk& w = s.walk;
  MoveArgs g;
  g.rows = p.rows, g.columns = p.columns;
  int64_t first = w.origin;
  if (w.row_offsets) {
    g.row_offsets = w.row_offsets + p.row;
  } else {
    g.row_stride = w.row_stride;
    first += p.row * w.row_stride;
  }
  if (w.column_offsets) {
    g.column_offsets = w.column_offsets + p.column;
  } else {
    g.column_stride = w.column_stride;
    first += p.column * w.column_stride;
  }
  g.from = s.from + first * static_cast<int64_t>(s.bytes);
  g.size = s.access.size - first;
  g.out = p.data, g.out_stride = p.stride;
  move_of(s.bytes)(g);
}

const int64_t* positions_of(const Operand& whole, int64_t row) {
  return static_cast<const int64_t*>(whole.data) +
         (whole.offsets ? whole.offsets[row] : row * whole.stride);
}

void gather_in_range(const MoveSource& s, const TilePart& p) {
  const Walk& w = s.walk;
  GatherArgs g;
  g.rows = p.rows, g.columns = p.columns;
  int64_t first = w.origin + p.column * w.column_stride;
  g.positions = *w.whole;
  g.positions.data = static_cast<const int64_t*>(w.whole->data) + p.column;
  if (w.whole->offsets) {
    g.positions.offsets += p.row;
  } else {
    g.positions.data = positions_of(g.positions, p.row);
  }
  if (w.row_offsets) {
    g.row_offsets = w.row_offsets + p.row;
  } else {
    g.row_stride = w.row_stride;
    first += p.row * w.row_stride;
  }
  g.scale = w.whole_scale, g.column_stride = w.column_stride;
  g.from = s.from + first * static_cast<int64_t>(s.bytes);
  g.out = p.data, g.out_stride = p.stride;
  kernels().gather[number_of(s.bytes)](g);
}

// Element by element, those outside of the tensor from its ends.
template <typename T>
void move_clamped(const MoveSource& s, const TilePart& p) {
  const T* from = reinterpret_cast<const T*>(s.from);
  const Walk& w = s.walk;
  const int64_t last = s.access.size - 1;
  for (int64_t r = 0; r < p.rows; ++r) {
    T* out = reinterpret_cast<T*>(p.data) + r * p.stride;
    const int64_t row = w.row(p.row + r);
    if (w.whole) {
      const int64_t* index = positions_of(*w.whole, p.row + r) + p.column;
      for (int64_t c = 0; c < p.columns; ++c) {
        const int64_t at = row + index[c] * w.whole_scale + w.column(p.column + c);
        out[c] = from[std::clamp<int64_t>(at, 0, last)];
      }
    } else {
      for (int64_t c = 0; c < p.columns; ++c) {
        out[c] = from[std::clamp<int64_t>(row + w.column(p.column + c), 0, last)];
      }
    }
  }
}

// Of the offsets of columns.
std::pair<int64_t, int64_t> column_range(const Walk& w, const TilePart& p) {
  if (!w.column_offsets) {
    return std::minmax(w.column(p.column), w.column(p.column + p.columns - 1));
  }
  const auto [low, high] =
      std::minmax_element(w.column_offsets + p.column, w.column_offsets + p.column + p.columns);
  return {*low, *high};
}

// Rows that lie within the tensor need no clamping, though others may.
void move_guarded(const MoveSource& s, TilePart p) {
  const auto [low, high] = column_range(s.walk, p);
  const auto inside = [&](int64_t row) {
    const int64_t begin = s.walk.row(row);
    return begin + low >= 0 && begin + high < s.access.size;
  };
  const int64_t end = p.row + p.rows;
  while (p.row < end) {
    const bool in_range = inside(p.row);
    p.rows = 1;
    while (p.row + p.rows < end && inside(p.row + p.rows) == in_range) ++p.rows;
    if (in_range) {
      move_in_range(s, p);
    } else {
      dispatch_bytes(s.bytes, [&](auto tag) { move_clamped<decltype(tag)>(s, p); });
    }
    p.data += p.rows * p.stride * static_cast<int64_t>(s.bytes);
    p.row += p.rows;
  }
}

template <typename T>
void scatter(T* to, const Walk& w, const TilePart& p) {
  const T* from = reinterpret_cast<const T*>(p.data);
  for (int64_t r = 0; r < p.rows; ++r) {
    T* row = to + w.row(p.row + r);
    const T* x = from + r * p.stride;
    if (w.column_offsets) {
      const int64_t* offsets = w.column_offsets + p.column;
      for (int64_t c = 0; c < p.columns; ++c) row[offsets[c]] = x[c];
    } else {
      const int64_t step = w.column_stride;
      row += p.column * step;
      for (int64_t c = 0; c < p.columns; ++c) row[c * step] = x[c];
    }
  }
}

// Of rows that lie beside each other in the output.
void scatter_transposed(size_t bytes, char* to, const Walk& w, const TilePart& p) {
  MoveArgs g;
  g.rows = p.columns, g.columns = p.rows;
  g.from = p.data, g.size = p.rows * p.stride;
  g.row_stride = 1, g.column_stride = p.stride;
  g.out = to + (w.origin + p.row + p.column * w.column_stride) * static_cast<int64_t>(bytes);
  g.out_stride = w.column_stride;
  move_of(bytes)(g);
}

}  // namespace

void move_elements(const MoveSource& s, const TilePart& p) {
  if (p.rows == 0 || p.columns == 0) return;
  if (s.walk.whole && s.access.in_range) {
    gather_in_range(s, p);
  } else if (s.walk.whole) {
    dispatch_bytes(s.bytes, [&](auto tag) { move_clamped<decltype(tag)>(s, p); });
  } else if (s.access.in_range) {
    move_in_range(s, p);
  } else {
    move_guarded(s, p);
  }
}

void scatter_elements(size_t bytes, char* output, const Walk& w, const TilePart& part) {
  if (!w.row_offsets && !w.column_offsets && w.row_stride == 1) {
    return scatter_transposed(bytes, output, w, part);
  }
  dispatch_bytes(bytes,
                 [&](auto tag) { scatter(reinterpret_cast<decltype(tag)*>(output), w, part); });
}

}  // namespace redfuser::cpu
