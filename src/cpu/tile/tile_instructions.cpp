#include "cpu/tile/tile_instructions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace redfuser::cpu {

Extents extents_of(const TileContext& machine, const Register& r) {
  const int64_t rows = has_rows(r.shape) ? machine.rows.count : 1;
  if (!has_columns(r.shape)) return {1, rows};
  return {rows, machine.columns[static_cast<size_t>(r.scope)].count};
}

bool is_vector(Shape operand, Shape result) {
  return operand == result || (has_columns(operand) && has_columns(result));
}

Operand operand(const TileContext& machine, RegisterId r, Shape result) {
  const Slot& s = machine.slots[static_cast<size_t>(r)];
  const Shape shape = info(machine, r).shape;
  if (shape == Shape::Tile) return {s.data, s.stride, s.offsets};
  // A row vector against a tile gives one scalar per row; everything else is the same for all rows.
  const bool per_row = shape == Shape::Rows && has_columns(result);
  return {s.data, per_row ? 1 : 0, nullptr};
}

int64_t padded_columns(const TileContext& machine, RegisterId out, int64_t columns,
                       std::span<const RegisterId> operands) {
  const Register& result = info(machine, out);
  if (!result.dense) return columns;
  for (RegisterId r : operands) {
    const Register& i = info(machine, r);
    if (!i.dense && is_vector(i.shape, result.shape)) return columns;
  }
  return std::min(padded(columns), result.stride);
}

Fill::Fill(RegisterId out, double number, int64_t integer) : number(number), integer(integer) {
  writes = {out};
}

namespace {

template <typename T>
void fill_rows(char* to, const Extents& e, int64_t stride, T value) {
  T* row = reinterpret_cast<T*>(to);
  for (int64_t r = 0; r < e.rows; ++r, row += stride) std::fill_n(row, e.columns, value);
}

}  // namespace

void Fill::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  Extents e = extents_of(machine, r);
  if (r.matrix_rows > 0) e = {r.matrix_rows, has_columns(r.shape) ? e.columns : machine.rows.count};
  char* to = slot(machine, writes[0]).data;
  switch (r.elem) {
    case Elem::F32:
      return fill_rows(to, e, r.stride, static_cast<float>(number));
    case Elem::F64:
      return fill_rows(to, e, r.stride, number);
    case Elem::I32:
      return fill_rows(to, e, r.stride, static_cast<int32_t>(integer));
    case Elem::I64:
    case Elem::U64:
      return fill_rows(to, e, r.stride, integer);
    case Elem::Bool:
      return fill_rows(to, e, r.stride, static_cast<uint8_t>(integer));
  }
}

RowIndex::RowIndex(RegisterId out, int64_t inner, int64_t extent) : inner(inner), extent(extent) {
  writes = {out};
}

namespace {

// By runs that count up or repeat a value.
void fill_runs(int64_t* out, int64_t begin, int64_t count, int64_t inner, int64_t extent) {
  int64_t low = begin % inner, value = (begin / inner) % extent;
  for (int64_t run = 0; count > 0; out += run, count -= run) {
    if (inner == 1) {
      run = std::min(count, extent - value);
      for (int64_t i = 0; i < run; ++i) out[i] = value + i;
      value = 0;
    } else {
      run = std::min(count, inner - low);
      std::fill_n(out, run, value);
      low = 0;
      if (++value == extent) value = 0;
    }
  }
}

// (position / inner) mod extent. The values repeat after inner · extent positions.
void fill_index(int64_t* out, int64_t begin, int64_t count, int64_t inner, int64_t extent) {
  if (count == 0) return;  // of an axis without elements, whose sizes divide nothing
  int64_t done = extent < count / inner ? inner * extent : count;
  fill_runs(out, begin, done, inner, extent);
  for (int64_t more = 0; done < count; done += more) {
    more = std::min(done, count - done);
    std::copy_n(out, more, out + done);
  }
}

}  // namespace

void RowIndex::run(TileContext& machine) const {
  fill_index(reinterpret_cast<int64_t*>(slot(machine, writes[0]).data), machine.rows.begin,
             machine.rows.count, inner, extent);
}

ColumnIndex::ColumnIndex(RegisterId out, int64_t inner, int64_t extent)
    : inner(inner), extent(extent) {
  writes = {out};
}

void ColumnIndex::run(TileContext& machine) const {
  const auto& columns = machine.columns[static_cast<size_t>(info(machine, writes[0]).scope)];
  fill_index(reinterpret_cast<int64_t*>(slot(machine, writes[0]).data), columns.begin,
             columns.count, inner, extent);
}

AxisValue::AxisValue(RegisterId out, int slot_number) : slot_number(slot_number) { writes = {out}; }

void AxisValue::run(TileContext& machine) const {
  *reinterpret_cast<int64_t*>(slot(machine, writes[0]).data) =
      machine.axes[static_cast<size_t>(slot_number)];
}

Count::Count(RegisterId out, int scope, bool after) : scope(scope), after(after) { writes = {out}; }

void Count::run(TileContext& machine) const {
  const auto& columns = machine.columns[static_cast<size_t>(scope)];
  *reinterpret_cast<int64_t*>(slot(machine, writes[0]).data) =
      columns.begin + (after ? columns.count : 0);
}

Unary::Unary(UnaryFn function, RegisterId out, RegisterId a) : function(function) {
  reads = {a};
  writes = {out};
  elementwise = bindable = true;
}

void Unary::run(TileContext& machine) const {
  const RegisterId out = writes[0];
  const Register& r = info(machine, out);
  const Extents e = extents_of(machine, r);
  function(e.rows, padded_columns(machine, out, e.columns, reads), slot(machine, out).data,
           slot(machine, out).stride, operand(machine, reads[0], r.shape));
}

Binary::Binary(const BinaryFn* functions, RegisterId out, RegisterId a, RegisterId b)
    : functions(functions) {
  reads = {a, b};
  writes = {out};
  elementwise = bindable = true;
}

void Binary::run(TileContext& machine) const {
  const RegisterId out = writes[0], a = reads[0], b = reads[1];
  const Register& r = info(machine, out);
  const Extents e = extents_of(machine, r);
  const bool vector_a = is_vector(info(machine, a).shape, r.shape);
  const bool vector_b = is_vector(info(machine, b).shape, r.shape);
  const Mode mode = !vector_a ? Mode::SV : !vector_b ? Mode::VS : Mode::VV;
  functions[static_cast<int>(mode)](e.rows, padded_columns(machine, out, e.columns, reads),
                                    slot(machine, out).data, slot(machine, out).stride,
                                    operand(machine, a, r.shape), operand(machine, b, r.shape));
}

Select::Select(Elem elem, RegisterId out, RegisterId condition, RegisterId a, RegisterId b)
    : elem(elem) {
  reads = {condition, a, b};
  writes = {out};
  elementwise = bindable = true;
}

void Select::run(TileContext& machine) const {
  const RegisterId out = writes[0];
  const Register& r = info(machine, out);
  const Extents e = extents_of(machine, r);
  const bool scalar_a = !is_vector(info(machine, reads[1]).shape, r.shape);
  const bool scalar_b = !is_vector(info(machine, reads[2]).shape, r.shape);
  kernels().select[static_cast<int>(elem)][scalar_a][scalar_b](
      e.rows, padded_columns(machine, out, e.columns, reads), slot(machine, out).data,
      slot(machine, out).stride, operand(machine, reads[0], r.shape),
      operand(machine, reads[1], r.shape), operand(machine, reads[2], r.shape));
}

BoundPositions::BoundPositions(RegisterId out, RegisterId a, PositionBounds bounds)
    : bounds(bounds) {
  reads = {a};
  writes = {out};
  elementwise = bindable = true;
}

void BoundPositions::run(TileContext& machine) const {
  const RegisterId out = writes[0];
  const Register& r = info(machine, out);
  const Extents e = extents_of(machine, r);
  kernels().bound_positions(e.rows, padded_columns(machine, out, e.columns, reads),
                            reinterpret_cast<int64_t*>(slot(machine, out).data),
                            slot(machine, out).stride, operand(machine, reads[0], r.shape), bounds);
}

Convert::Convert(ConvertFn function, RegisterId out, RegisterId a) : function(function) {
  reads = {a};
  writes = {out};
  bindable = true;
}

void Convert::run(TileContext& machine) const {
  const Extents e = extents_of(machine, info(machine, writes[0]));
  for (int64_t row = 0; row < e.rows; ++row) {
    function(e.columns, row_address(machine, writes[0], row), row_address(machine, reads[0], row));
  }
}

Lookup::Lookup(RegisterId out, RegisterId a, const ByteTable& elements) : table(elements) {
  reads = {a};
  writes = {out};
  elementwise = bindable = true;
}

void Lookup::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  const Extents e = extents_of(machine, r);
  const Operand a = operand(machine, reads[0], r.shape);
  for (int64_t row = 0; row < e.rows; ++row) {
    const int64_t offset = a.offsets ? a.offsets[row] : row * a.stride;
    const auto* in = static_cast<const int32_t*>(a.data) + offset;
    auto* out = reinterpret_cast<uint32_t*>(slot(machine, writes[0]).data) +
                row * slot(machine, writes[0]).stride;
    kernels().look_up(table, e.columns, in, out);
  }
}

Spread::Spread(RegisterId out, RegisterId a) {
  reads = {a};
  writes = {out};
  bindable = true;
}

namespace {

template <typename T>
void spread_scalar(char* to, const char* from, int64_t count) {
  std::fill_n(reinterpret_cast<T*>(to), count, *reinterpret_cast<const T*>(from));
}

}  // namespace

void Spread::run(TileContext& machine) const {
  const Register& to = info(machine, writes[0]);
  const Register& from = info(machine, reads[0]);
  const Extents e = extents_of(machine, to);
  const auto bytes = static_cast<int64_t>(size_of(to.elem));
  const Operand source = operand(machine, reads[0], to.shape);
  for (int64_t row = 0; row < e.rows; ++row) {
    char* out = row_address(machine, writes[0], row);
    const int64_t offset = source.offsets ? source.offsets[row] : row * source.stride;
    const char* in = static_cast<const char*>(source.data) + offset * bytes;
    if (is_vector(from.shape, to.shape)) {
      std::memcpy(out, in, static_cast<size_t>(e.columns * bytes));
    } else if (bytes == 1) {
      spread_scalar<uint8_t>(out, in, e.columns);
    } else if (bytes == 4) {
      spread_scalar<uint32_t>(out, in, e.columns);
    } else {
      spread_scalar<int64_t>(out, in, e.columns);
    }
  }
}

ReduceColumns::ReduceColumns(ReduceFn function, RegisterId accumulator, RegisterId a)
    : function(function) {
  reads = {a, accumulator};
  writes = {accumulator};
}

void ReduceColumns::run(TileContext& machine) const {
  const Register& accumulator = info(machine, writes[0]);
  const Register& a = info(machine, reads[0]);
  const int64_t rows = has_rows(accumulator.shape) ? machine.rows.count : 1;
  const int64_t columns = machine.columns[static_cast<size_t>(a.scope)].count;
  function(rows, columns, slot(machine, writes[0]).data, operand(machine, reads[0], Shape::Tile));
}

StoreMatrixRow::StoreMatrixRow(RegisterId matrix, RegisterId a, int slot_number)
    : slot_number(slot_number) {
  reads = {a, matrix};
  writes = {matrix};
}

void StoreMatrixRow::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  const Extents e = extents_of(machine, info(machine, reads[0]));
  const auto bytes = static_cast<int64_t>(size_of(r.elem));
  std::memcpy(slot(machine, writes[0]).data +
                  machine.axes[static_cast<size_t>(slot_number)] * r.stride * bytes,
              slot(machine, reads[0]).data, static_cast<size_t>(e.columns * bytes));
}

void ColumnLoop::run(TileContext& machine) const {
  const Scope& s = machine.program->scopes[static_cast<size_t>(scope)];
  auto& range = machine.columns[static_cast<size_t>(scope)];
  const auto& part = machine.parts[static_cast<size_t>(scope)];
  const int64_t first = partial ? part.begin : 0;
  const int64_t end = partial ? part.begin + part.count : s.extent;
  for (int64_t begin = first; begin < end; begin += s.tile) {
    range = {begin, std::min(s.tile, end - begin)};
    for (const auto& instruction : block) instruction->run(machine);
  }
  range = {0, s.extent};
}

void AxisLoop::run(TileContext& machine) const {
  int64_t& value = machine.axes[static_cast<size_t>(slot_number)];
  for (value = 0; value < extent; ++value) {
    for (const auto& instruction : block) instruction->run(machine);
  }
}

void AtPartEnd::run(TileContext& machine) const {
  if ((machine.axes[static_cast<size_t>(slot_number)] + 1) % period != 0) return;
  for (const auto& instruction : block) instruction->run(machine);
}

void AfterFirst::run(TileContext& machine) const {
  const auto index = static_cast<size_t>(scope);
  if (machine.columns[index].begin == machine.parts[index].begin) return;
  for (const auto& instruction : block) instruction->run(machine);
}

}  // namespace redfuser::cpu
