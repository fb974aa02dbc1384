#include "cpu/tile/tile_memory.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace redfuser::cpu {

int64_t Linear::evaluate(const TileContext& machine) const {
  int64_t value = constant;
  for (auto& [slot, coefficient] : terms) {
    value += coefficient * machine.axes[static_cast<size_t>(slot)];
  }
  if (scalar != kNoRegister) {
    value += *reinterpret_cast<const int64_t*>(machine.slots[static_cast<size_t>(scalar)].data);
  }
  return value;
}

std::vector<RegisterId> Access::registers() const {
  std::vector<RegisterId> result;
  for (RegisterId r : {base.scalar, row_offsets, column_offsets, whole}) {
    if (r != kNoRegister) result.push_back(r);
  }
  return result;
}

namespace {

const int64_t* table(const TileContext& machine, RegisterId r) {
  return r == kNoRegister
             ? nullptr
             : reinterpret_cast<const int64_t*>(machine.slots[static_cast<size_t>(r)].data);
}

// The offset of the tile's first element, with the beginnings of its rows and columns.
int64_t origin(const TileContext& machine, const Access& access, Shape shape, int scope) {
  int64_t offset = access.base.evaluate(machine);
  if (has_rows(shape)) offset += machine.rows.begin * access.row_stride;
  if (has_columns(shape)) {
    offset += machine.columns[static_cast<size_t>(scope)].begin * access.column_stride;
  }
  return offset;
}

// An access as rows of elements: a vector along rows counts as one row.
struct Walk {
  int64_t rows = 1, columns = 1;
  int64_t origin = 0, row_stride = 0, column_stride = 0;
  const int64_t *row_offsets = nullptr, *column_offsets = nullptr;
  const Operand* whole = nullptr;
  int64_t row(int64_t r) const { return origin + (row_offsets ? row_offsets[r] : r * row_stride); }
  int64_t column(int64_t c) const { return column_offsets ? column_offsets[c] : c * column_stride; }
};

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

}  // namespace

LoadView::LoadView(RegisterId view, Access a) : access(std::move(a)) {
  reads = access.registers();
  writes = {view};
}

void LoadView::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  const char* base = machine.tensors[static_cast<size_t>(access.tensor)];
  slot(machine, writes[0]) = {const_cast<char*>(base) + origin(machine, access, r.shape, r.scope) *
                                                            static_cast<int64_t>(size_of(r.elem)),
                              access.row_stride, table(machine, access.row_offsets)};
}

LoadCopy::LoadCopy(RegisterId out, Access a) : access(std::move(a)) {
  reads = access.registers();
  writes = {out};
}

namespace {

constexpr int64_t kBlock = 16;  // a square of this size is transposed within the first-level cache
constexpr int64_t kChunk = 512;

// out[c] = from[offsets[c]].
template <typename T>
void gather_row(const T* from, const int64_t* offsets, int64_t columns, T* out) {
#pragma GCC unroll 4
  for (int64_t c = 0; c < columns; ++c) out[c] = from[offsets[c]];
}

// Copies elements of one storage type; `to` has `stride` elements between rows.
template <typename T>
void gather_rows(const T* from, const Access& access, const Walk& w, T* to, int64_t stride,
                 int64_t first_row, int64_t rows, int64_t first_column, int64_t columns) {
  const int64_t last = access.size - 1;
  for (int64_t r = 0; r < rows; ++r) {
    T* out = to + r * stride;
    const int64_t row = w.row(first_row + r);
    if (w.whole) {
      const Operand& o = *w.whole;
      const int64_t* index = static_cast<const int64_t*>(o.data) +
                             (o.offsets ? o.offsets[first_row + r] : (first_row + r) * o.stride) +
                             first_column;
      for (int64_t c = 0; c < columns; ++c) {
        out[c] = from[std::clamp<int64_t>(w.origin + index[c], 0, last)];
      }
    } else if (!access.in_range) {
      for (int64_t c = 0; c < columns; ++c) {
        out[c] = from[std::clamp<int64_t>(row + w.column(first_column + c), 0, last)];
      }
    } else if (w.column_offsets) {
      gather_row(from + row, w.column_offsets + first_column, columns, out);
    } else {
      const T* start = from + row + first_column * w.column_stride;
      for (int64_t c = 0; c < columns; ++c) out[c] = start[c * w.column_stride];
    }
  }
}

template <typename T>
void gather(const T* from, const Access& access, const Walk& w, T* to, int64_t stride,
            int64_t first_row, int64_t rows, int64_t first_column, int64_t columns) {
  const bool transposed = access.in_range && !w.whole && !w.column_offsets && !w.row_offsets &&
                          w.row_stride == 1 && w.column_stride != 1 && rows > 1;
  if (!transposed) {
    gather_rows(from, access, w, to, stride, first_row, rows, first_column, columns);
    return;
  }
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t height = std::min(kBlock, rows - r0);
    for (int64_t c = 0; c < columns; ++c) {
      const T* column = from + w.origin + first_row + r0 + (first_column + c) * w.column_stride;
      T* out = to + r0 * stride + c;
      for (int64_t r = 0; r < height; ++r) out[r * stride] = column[r];
    }
  }
}

void gather_any(size_t bytes, const char* from, const Access& access, const Walk& w, char* to,
                int64_t stride, int64_t first_row, int64_t rows, int64_t first_column,
                int64_t columns) {
  auto run = [&](auto tag) {
    using T = decltype(tag);
    gather(reinterpret_cast<const T*>(from), access, w, reinterpret_cast<T*>(to), stride, first_row,
           rows, first_column, columns);
  };
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

// A row whose elements lie side by side, the part outside the tensor repeated from its ends.
void load_clamped(ConvertFn load, size_t from_bytes, size_t to_bytes, const char* from,
                  int64_t size, int64_t start, int64_t columns, char* to) {
  const int64_t begin = std::clamp<int64_t>(-start, 0, columns);
  const int64_t end = std::clamp<int64_t>(size - start, begin, columns);
  load(end - begin, to + static_cast<size_t>(begin) * to_bytes,
       from + (start + begin) * static_cast<int64_t>(from_bytes));
  auto repeat = [&](int64_t c0, int64_t c1, int64_t element) {
    for (int64_t c = c0; c < c1; ++c) {
      load(1, to + static_cast<size_t>(c) * to_bytes,
           from + element * static_cast<int64_t>(from_bytes));
    }
  };
  repeat(0, begin, 0);
  repeat(end, columns, size - 1);
}

}  // namespace

void LoadCopy::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  const size_t from_bytes = size_of(access.dtype), to_bytes = size_of(r.elem);
  const char* from = machine.tensors[static_cast<size_t>(access.tensor)];
  char* to = slot(machine, writes[0]).data;
  Walk w = walk_of(machine, access, r.shape, r.scope);
  if (access.size <= 0) {  // only ever read under a false condition
    for (int64_t row = 0; row < w.rows; ++row) {
      std::memset(to + row * r.stride * static_cast<int64_t>(to_bytes), 0,
                  static_cast<size_t>(w.columns) * to_bytes);
    }
    return;
  }
  Operand whole;
  if (access.whole != kNoRegister) {
    whole = operand(machine, access.whole, r.shape);
    w.whole = &whole;
  }
  const ConvertFn load = kernels().load[static_cast<int>(access.dtype)];
  const bool direct = same_storage(access.dtype);
  if (!w.whole && !w.column_offsets && w.column_stride == 1) {
    for (int64_t row = 0; row < w.rows; ++row) {
      char* out = to + row * r.stride * static_cast<int64_t>(to_bytes);
      const int64_t start = w.row(row);
      if (access.in_range) {
        load(w.columns, out, from + start * static_cast<int64_t>(from_bytes));
      } else {
        load_clamped(load, from_bytes, to_bytes, from, access.size, start, w.columns, out);
      }
    }
    return;
  }
  if (direct) {
    gather_any(to_bytes, from, access, w, to, r.stride, 0, w.rows, 0, w.columns);
    return;
  }
  alignas(64) char staged[kBlock * kChunk * 8];
  for (int64_t row = 0; row < w.rows; row += kBlock) {
    const int64_t height = std::min(kBlock, w.rows - row);
    for (int64_t c = 0; c < w.columns; c += kChunk) {
      const int64_t width = std::min(kChunk, w.columns - c);
      gather_any(from_bytes, from, access, w, staged, kChunk, row, height, c, width);
      for (int64_t i = 0; i < height; ++i) {
        load(width, to + ((row + i) * r.stride + c) * static_cast<int64_t>(to_bytes),
             staged + static_cast<size_t>(i * kChunk) * from_bytes);
      }
    }
  }
}

Store::Store(Access a, RegisterId value, Shape shape, int scope)
    : access(std::move(a)), shape(shape), scope(scope) {
  reads = access.registers();
  reads.push_back(value);
}

namespace {

template <typename T>
void scatter(T* to, const Walk& w, const T* from, int64_t stride, int64_t first_row, int64_t rows,
             int64_t first_column, int64_t columns) {
  if (!w.row_offsets && !w.column_offsets && w.row_stride == 1 && rows > 1) {
    for (int64_t c = 0; c < columns; ++c) {
      T* column = to + w.origin + first_row + (first_column + c) * w.column_stride;
      for (int64_t r = 0; r < rows; ++r) column[r] = from[r * stride + c];
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* row = to + w.row(first_row + r);
    for (int64_t c = 0; c < columns; ++c) row[w.column(first_column + c)] = from[r * stride + c];
  }
}

}  // namespace

void Store::run(TileContext& machine) const {
  const RegisterId value = reads.back();
  const Register& r = info(machine, value);
  const auto from_bytes = static_cast<int64_t>(size_of(r.elem));
  const auto to_bytes = static_cast<int64_t>(size_of(access.dtype));
  char* to = machine.outputs[static_cast<size_t>(access.tensor)];
  const Walk w = walk_of(machine, access, shape, scope);
  const ConvertFn store = kernels().store[static_cast<int>(r.elem)][static_cast<int>(access.dtype)];
  const Operand source = operand(machine, value, shape);
  auto row_of = [&](int64_t row) {
    const int64_t offset = source.offsets ? source.offsets[row] : row * source.stride;
    return static_cast<const char*>(source.data) + offset * from_bytes;
  };
  if (!w.column_offsets && w.column_stride == 1) {
    for (int64_t row = 0; row < w.rows; ++row) {
      store(w.columns, to + w.row(row) * to_bytes, row_of(row));
    }
    return;
  }
  alignas(64) char staged[kBlock * kChunk * 8];
  for (int64_t row = 0; row < w.rows; row += kBlock) {
    const int64_t height = std::min(kBlock, w.rows - row);
    for (int64_t c = 0; c < w.columns; c += kChunk) {
      const int64_t width = std::min(kChunk, w.columns - c);
      for (int64_t i = 0; i < height; ++i) {
        store(width, staged + i * kChunk * to_bytes, row_of(row + i) + c * from_bytes);
      }
      auto run = [&](auto tag) {
        using T = decltype(tag);
        scatter(reinterpret_cast<T*>(to), w, reinterpret_cast<const T*>(staged), kChunk, row,
                height, c, width);
      };
      switch (to_bytes) {
        case 1:
          run(uint8_t{});
          break;
        case 2:
          run(uint16_t{});
          break;
        case 4:
          run(uint32_t{});
          break;
        default:
          run(uint64_t{});
          break;
      }
    }
  }
}

BindOutput::BindOutput(RegisterId view, Access a) : access(std::move(a)) { writes = {view}; }

void BindOutput::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  slot(machine, writes[0]) = {
      machine.outputs[static_cast<size_t>(access.tensor)] +
          origin(machine, access, r.shape, r.scope) * static_cast<int64_t>(size_of(r.elem)),
      access.row_stride, nullptr};
}

Gemm::Gemm(RegisterId out, RegisterId a, int contraction_scope, bool accumulate)
    : contraction_scope(contraction_scope), accumulate(accumulate) {
  reads = {a};
  if (accumulate) reads.push_back(out);
  writes = {out};
}

void Gemm::set_b(Access access) {
  b = std::move(access);
  for (RegisterId r : b.registers()) reads.push_back(r);
}

void Gemm::set_b(RegisterId matrix, bool transposed) {
  b_is_register = true;
  b_transposed = transposed;
  reads.push_back(matrix);
}

void Gemm::run(TileContext& machine) const {
  const Register& out = info(machine, writes[0]);
  const Extents e = extents_of(machine, out);
  const auto& contraction = machine.columns[static_cast<size_t>(contraction_scope)];
  const auto& columns = machine.columns[static_cast<size_t>(out.scope)];
  const bool f64 = out.elem == Elem::F64;
  const auto storage = static_cast<uint8_t>(f64 ? DType::Float64 : DType::Float32);
  GemmArgs g;
  g.m = e.rows;
  g.n = e.columns;
  g.k = contraction.count;
  const Operand a = operand(machine, reads[0], Shape::Tile);
  g.a = {a.data, storage, a.stride, 1, a.offsets, nullptr};
  if (b_is_register) {
    const RegisterId matrix = reads.back();
    const int64_t stride = info(machine, matrix).stride;
    g.b = {slot(machine, matrix).data, storage, b_transposed ? 1 : stride,
           b_transposed ? stride : 1,  nullptr, nullptr};
  } else {
    const char* base = machine.tensors[static_cast<size_t>(b.tensor)];
    const int64_t offset = b.base.evaluate(machine) + contraction.begin * b.row_stride +
                           columns.begin * b.column_stride;
    g.b = {base + offset * static_cast<int64_t>(size_of(b.dtype)),
           static_cast<uint8_t>(b.dtype),
           b.row_stride,
           b.column_stride,
           table(machine, b.row_offsets),
           table(machine, b.column_offsets)};
  }
  g.c = slot(machine, writes[0]).data;
  g.c_stride = slot(machine, writes[0]).stride;
  g.c_padded = out.dense;
  g.accumulate = accumulate;
  g.scratch = machine.gemm_scratch;
  (f64 ? kernels().gemm_f64 : kernels().gemm_f32)(g);
}

}  // namespace redfuser::cpu
