// The operations of a chain for one row (ChainArgs), as few steps as they become.
#pragma once

#include "cpu/simd/isa.h"
#include "cpu/simd/pointwise/chain_types.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Operations with a vector (V) or a scalar (S), on the value v.
enum class Code : uint8_t {
  AddV,      // v + o
  SubV,      // v − o
  SubFromV,  // o − v
  MulV,      // v · o
  DivV,      // v / o
  DivIntoV,  // o / v
  MaxV,      // the greater; not a number if one of them is none
  MaxOfV,    // the same: of equal ones v, not o
  MinV,
  MinOfV,
  AddS,
  SubFromS,
  MulS,
  DivS,  // with 1 / o as `second`
  DivIntoS,
  MaxS,  // of a scalar that is a number
  MaxOfS,
  MinS,
  MinOfS,
  ScaleS,  // v · o + second
  ClampS,  // the lesser of `second` and the greater of o and v
  Abs,
  Square,
  Round,
  Exp,
  Erf,
  Tanh,
};

template <class T>
struct Step {
  Code code;
  T scalar, second;
  const T* vector;
  int link = 0;  // number of the link that the step begins with
};

// Steps from `first` on that divide, round, add a zero point and bound the sum to whole numbers of
// 8 bits, into bytes.
struct QuantizedEnd {
  bool any = false;
  int first = 0;
  float scale = 1, reciprocal = 1;
  int zero = 0, low = 0, high = 0;
};

template <class T>
struct Row {
  const char* first;
  ChainType first_type, out_type;
  int64_t first_bytes, out_bytes;  // of an element
  Step<T> steps[kMostLinks];
  int count = 0;
  QuantizedEnd end;
  // By link: the step that has its scalar, and whether as `second`.
  struct Place {
    int step;
    bool second;
  };
  Place places[kMostLinks];
  bool nan_bound = false;
  bool functions = false;  // exponentials and the like
};

template <class T>
Step<T> vector_step(ChainOp op, const T* from) {
  constexpr Code kCodes[] = {Code::AddV,     Code::SubV, Code::SubFromV, Code::MulV, Code::DivV,
                             Code::DivIntoV, Code::MaxV, Code::MaxOfV,   Code::MinV, Code::MinOfV};
  return {kCodes[static_cast<int>(op) - static_cast<int>(ChainOp::Add)], T(0), T(0), from};
}

// v − o = v + (−o), −v = v · −1, and a bound that is not a number gives v + o.
template <class T>
Step<T> scalar_step(ChainOp op, T o) {
  constexpr Code kCodes[] = {Code::MulS, Code::Abs,   Code::Square,   Code::Round, Code::Exp,
                             Code::Erf,  Code::Tanh,  Code::AddS,     Code::AddS,  Code::SubFromS,
                             Code::MulS, Code::DivS,  Code::DivIntoS, Code::MaxS,  Code::MaxOfS,
                             Code::MinS, Code::MinOfS};
  if (op == ChainOp::Neg) o = T(-1);
  if (op == ChainOp::Sub) o = -o;
  const bool bound = op >= ChainOp::Max;
  const T second = op == ChainOp::Div ? 1 / o : T(0);
  return {bound && o != o ? Code::AddS : kCodes[static_cast<int>(op)], o, second, nullptr};
}

// The step and the next one as one step.
template <class T>
bool joins(Step<T>& step, const Step<T>& next) {
  if (step.code == Code::MulS && next.code == Code::AddS) {
    step.code = Code::ScaleS;
  } else if (step.code == Code::MaxS && next.code == Code::MinS) {
    step.code = Code::ClampS;
  } else {
    return false;
  }
  step.second = next.scalar;
  return true;
}

RF_INLINE const char* first_of_row(const ChainArgs& g, int64_t r, int64_t bytes) {
  const int64_t offset = g.first.offsets ? g.first.offsets[r] : r * g.first.stride;
  return static_cast<const char*>(g.first.data) + offset * bytes;
}

// The quantised end of a row; none unless the scale is within [2^-60, 2^60], where the remainder
// v - q · s is exact.
template <class T>
QuantizedEnd quantized_end(const Row<T>& row) {
  const bool bytes = row.out_type == ChainType::UInt8 || row.out_type == ChainType::Int8;
  if (sizeof(T) != sizeof(float) || !bytes || row.count < 3) return {};
  int i = row.count - 1;
  const Step<T>& bounds = row.steps[i];
  const T zero = row.steps[i - 1].code == Code::AddS ? row.steps[--i].scalar : T(0);
  if (bounds.code != Code::ClampS || i < 2 || row.steps[i - 1].code != Code::Round) return {};
  const Step<T>& division = row.steps[i - 2];
  const T scale = division.scalar < 0 ? -division.scalar : division.scalar;
  const bool fits = division.code == Code::DivS && scale >= T(0x1p-60) && scale <= T(0x1p60);
  const T low = bounds.scalar, high = bounds.second;
  if (!fits || !(zero >= -255 && zero <= 255) || !(low >= -128 && low <= high && high <= 255)) {
    return {};
  }
  const QuantizedEnd end{true,
                         i - 2,
                         static_cast<float>(division.scalar),
                         static_cast<float>(1 / division.scalar),
                         static_cast<int>(zero),
                         static_cast<int>(low),
                         static_cast<int>(high)};
  const bool whole = end.zero == zero && end.low == low && end.high == high;
  const bool of_type = row.out_type == ChainType::Int8 ? high <= 127 : low >= 0;
  return whole && of_type ? end : QuantizedEnd{};
}

template <class T>
Row<T> row_of_chain(const ChainArgs& g, int64_t r) {
  Row<T> row;
  row.first_type = g.first_type, row.out_type = g.out_type;
  row.first_bytes = bytes_of<T>(g.first_type), row.out_bytes = bytes_of<T>(g.out_type);
  row.first = first_of_row(g, r, row.first_bytes);
  for (int i = 0; i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    const bool scalar = is_unary(link.op) || !link.vector;
    const T* from = is_unary(link.op) ? nullptr : row_of<T>(link.operand, r);
    Step<T> step = scalar ? scalar_step<T>(link.op, from == nullptr ? T(0) : *from)
                          : vector_step<T>(link.op, from);
    step.link = i;
    row.functions |= is_function(link.op);
    row.nan_bound |= scalar && link.op >= ChainOp::Max && step.code == Code::AddS;
    if (row.count > 0 && joins(row.steps[row.count - 1], step)) {
      row.places[i] = {row.count - 1, true};
      continue;
    }
    row.places[i] = {row.count, false};
    row.steps[row.count++] = step;
  }
  row.end = quantized_end(row);
  return row;
}

// The same chain with its vectors in another row.
template <class T>
RF_INLINE void move_to_row(Row<T>& row, const ChainArgs& g, int64_t r) {
  row.first = first_of_row(g, r, row.first_bytes);
  for (int i = 0; i < row.count; ++i) {
    Step<T>& step = row.steps[i];
    if (step.vector != nullptr) step.vector = row_of<T>(g.links[step.link].operand, r);
  }
}

// The same chain with the scalars of another row; false where other steps, or another end, may
// serve that row.
template <class T>
RF_INLINE bool take_scalars(Row<T>& row, const ChainArgs& g, int64_t r) {
  const bool bytes = row.out_bytes == 1;
  if (row.nan_bound || (bytes && !row.end.any)) return false;
  for (int i = 0; i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    if (is_unary(link.op) || link.vector) continue;
    if (link.operand.stride == 0 && link.operand.offsets == nullptr) continue;
    const auto place = row.places[i];
    const T o = *row_of<T>(link.operand, r);
    if ((link.op >= ChainOp::Max && o != o) || (bytes && place.step >= row.end.first)) return false;
    Step<T>& step = row.steps[place.step];
    (place.second ? step.second : step.scalar) = link.op == ChainOp::Sub ? -o : o;
    if (step.code == Code::DivS) step.second = 1 / o;
  }
  return true;
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
