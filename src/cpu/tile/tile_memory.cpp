#include "cpu/tile/tile_memory.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cpu/tile/bytes/words.h"
#include "cpu/tile/move_elements.h"

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

LoadView::LoadView(RegisterId view, Access a) : access(std::move(a)) {
  reads = access.registers();
  writes = {view};
}

void LoadView::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  const char* base = machine.tensors[static_cast<size_t>(access.tensor)];
  slot(machine, writes[0]) = {
      const_cast<char*>(base) + origin(machine, access, r.shape, r.scope) * element_bytes(r),
      access.row_stride, table(machine, access.row_offsets)};
}

LoadCopy::LoadCopy(RegisterId out, Access a) : access(std::move(a)) {
  reads = access.registers();
  writes = {out};
  bindable = true;
}

namespace {

constexpr int64_t kBlock = 16, kChunk = 512;  // rows and columns that are converted at a time

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
  const int64_t stride = slot(machine, writes[0]).stride;
  Walk w = walk_of(machine, access, r.shape, r.scope);
  if (access.size <= 0) {  // only ever read under a false condition
    for (int64_t row = 0; row < w.rows; ++row) {
      std::memset(to + row * stride * static_cast<int64_t>(to_bytes), 0,
                  static_cast<size_t>(w.columns) * to_bytes);
    }
    return;
  }
  Operand whole;
  if (access.whole != kNoRegister) {
    whole = operand(machine, access.whole, r.shape);
    w.whole = &whole;
    w.whole_scale = access.whole_scale;
  }
  const ConvertFn load =
      access.words ? copy_words(from_bytes) : kernels().load[static_cast<int>(access.dtype)];
  const bool direct = access.copies();
  if (!w.whole && !w.column_offsets && w.column_stride == 1) {
    for (int64_t row = 0; row < w.rows; ++row) {
      char* out = to + row * stride * static_cast<int64_t>(to_bytes);
      const int64_t start = w.row(row);
      if (access.in_range) {
        load(w.columns, out, from + start * static_cast<int64_t>(from_bytes));
      } else {
        load_clamped(load, from_bytes, to_bytes, from, access.size, start, w.columns, out);
      }
    }
    return;
  }
  const MoveSource source{from, access, w, from_bytes};
  if (direct) {
    move_elements(source, {0, w.rows, 0, w.columns, to, stride});
    return;
  }
  alignas(64) char staged[kBlock * kChunk * 8];
  for (int64_t row = 0; row < w.rows; row += kBlock) {
    const int64_t height = std::min(kBlock, w.rows - row);
    for (int64_t c = 0; c < w.columns; c += kChunk) {
      const int64_t width = std::min(kChunk, w.columns - c);
      move_elements(source, {row, height, c, width, staged, kChunk});
      for (int64_t i = 0; i < height; ++i) {
        load(width, to + ((row + i) * stride + c) * static_cast<int64_t>(to_bytes),
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

void Store::run(TileContext& machine) const {
  const RegisterId value = reads.back();
  const Register& r = info(machine, value);
  const auto from_bytes = static_cast<int64_t>(size_of(r.elem));
  const auto to_bytes = static_cast<int64_t>(size_of(access.dtype));
  char* to = machine.outputs[static_cast<size_t>(access.tensor)];
  const Walk w = walk_of(machine, access, shape, scope);
  const ConvertFn store =
      access.words ? copy_words(size_of(access.dtype))
                   : kernels().store[static_cast<int>(r.elem)][static_cast<int>(access.dtype)];
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
  if (access.words && source.offsets == nullptr) {
    const TilePart whole{0, w.rows, 0, w.columns, const_cast<char*>(row_of(0)), source.stride};
    return scatter_elements(static_cast<size_t>(to_bytes), to, w, whole);
  }
  alignas(64) char staged[kBlock * kChunk * 8];
  for (int64_t row = 0; row < w.rows; row += kBlock) {
    const int64_t height = std::min(kBlock, w.rows - row);
    for (int64_t c = 0; c < w.columns; c += kChunk) {
      const int64_t width = std::min(kChunk, w.columns - c);
      for (int64_t i = 0; i < height; ++i) {
        store(width, staged + i * kChunk * to_bytes, row_of(row + i) + c * from_bytes);
      }
      const TilePart part{row, height, c, width, staged, kChunk};
      scatter_elements(static_cast<size_t>(to_bytes), to, w, part);
    }
  }
}

BindOutput::BindOutput(RegisterId view, Access a) : access(std::move(a)) { writes = {view}; }

void BindOutput::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  slot(machine, writes[0]) = {machine.outputs[static_cast<size_t>(access.tensor)] +
                                  origin(machine, access, r.shape, r.scope) * element_bytes(r),
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
