#include "cpu/recurrent/byte_matrix.h"

#include <algorithm>
#include <cmath>

#include "cpu/simd/integers/integer_gemm.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kFewRows = 32;

}  // namespace

ByteRange ByteRange::of(const float* data, int64_t count) {
  const auto& reduce = kernels().reduce[static_cast<int>(Elem::F32)];
  const Operand all{data, count, nullptr};
  float low = 0, high = 0;
  reduce[static_cast<int>(ReduceOp::Min)](1, count, &low, all);
  reduce[static_cast<int>(ReduceOp::Max)](1, count, &high, all);
  ByteRange range;
  if (low != high) range.scale = (high - low) / 255.0f;
  const float zero = std::nearbyint(std::clamp(-low / range.scale, 0.0f, 255.0f));
  range.zero = std::isnan(zero) ? 0 : static_cast<int32_t>(zero);
  return range;
}

void ByteRows::fit(const float* data, int64_t count) {
  range_ = ByteRange::of(data, count);
  fitted_ = true;
}

void ByteRows::assign(const float* base, std::span<const int64_t> offsets, int64_t depth) {
  const IntegerKernels& kernels = integer_kernels();
  const auto count = static_cast<int64_t>(offsets.size());
  if (!fitted_) range_ = ByteRange::of(base, count * depth);
  bytes_.resize(static_cast<size_t>(count * depth));
  for (int64_t i = 0; i < count; ++i) {
    cpu::kernels().quantize_f32(depth, base + offsets[static_cast<size_t>(i)], range_.scale,
                                range_.zero, bytes_.data() + i * depth);
  }
  stride_ = kernels.row_bytes(depth);
  if (packed_.size() < count * stride_) packed_ = Tensor(DType::UInt8, {count * stride_});
  sums_.resize(static_cast<size_t>(count));
  IntegerPackArgs args;
  args.matrix = {bytes_.data(), static_cast<uint8_t>(DType::UInt8), depth, 1, nullptr, nullptr};
  args.count = count;
  args.depth = depth;
  args.out = packed_.mutable_data();
  args.sums = sums_.data();
  if (count > 0) kernels.pack_rows(args);
  rows_ = static_cast<const char*>(packed_.data());
}

ByteMatrix::ByteMatrix(const ByteColumns& from, int64_t depth, std::span<const int64_t> columns)
    : depth_(depth), columns_(static_cast<int64_t>(columns.size())) {
  const IntegerKernels& kernels = integer_kernels();
  const int64_t offset = kernels.right_offset(from.dtype == DType::Int8, true);
  for (const int64_t column : columns) {
    const int64_t at = from.per_column ? column : 0;
    scales_.push_back(from.scales[at]);
    const int64_t zero = from.dtype == DType::Int8 ? static_cast<const int8_t*>(from.zeros)[at]
                                                   : static_cast<const uint8_t*>(from.zeros)[at];
    zeros_.push_back(static_cast<int32_t>(zero + offset));
    any_zero_ |= zeros_.back() != 0;
  }
  panels_ = Tensor(DType::UInt8, {kernels.panel_bytes(columns_, depth)});
  terms_.resize(columns.size());
  IntegerPackArgs args;
  args.matrix = {from.data,     static_cast<uint8_t>(from.dtype), from.row_stride, 0, nullptr,
                 columns.data()};
  args.count = columns_;
  args.depth = depth;
  args.offset = offset;
  args.out = panels_.mutable_data();
  args.sums = terms_.data();
  kernels.pack_columns(args);
  for (size_t j = 0; j < terms_.size(); ++j) {
    terms_[j] -= static_cast<int32_t>(depth) * zeros_[j];
  }
}

void ByteMatrix::add(const Rows& rows, int64_t first, int64_t count, float* c,
                     int64_t c_stride) const {
  for (int64_t i = 0; i < count; i += kFewRows) {
    add_few(rows, first + i, std::min(kFewRows, count - i), c + i * c_stride, c_stride);
  }
}

void ByteMatrix::add_few(const Rows& rows, int64_t first, int64_t count, float* c,
                         int64_t c_stride) const {
  const IntegerKernels& kernels = integer_kernels();
  const int64_t stride = kernels.packed_columns(columns_) + 16;
  thread_local std::vector<int32_t> sums;
  sums.resize(static_cast<size_t>(std::max<int64_t>(1, count) * stride));
  IntegerMultiplyArgs g;
  g.m = count;
  g.n = columns_;
  g.depth = kernels.packed_depth(depth_);
  g.a = rows.row(first);
  g.a_stride = rows.stride();
  g.b = panels_.data();
  g.c = sums.data();
  g.c_stride = stride;
  kernels.multiply(g);
  int32_t zeros[kFewRows];
  std::fill_n(zeros, count, rows.range().zero);
  IntegerFinishArgs f;
  f.rows = count;
  f.columns = columns_;
  f.c = sums.data();
  f.c_stride = stride;
  if (rows.range().zero != 0) {
    f.row_zeros = zeros;
    f.column_terms = terms_.data();
  }
  if (any_zero_) {
    f.row_sums = rows.sums(first);
    f.column_zeros = zeros_.data();
  }
  f.out = sums.data();
  f.out_stride = stride;
  const KernelTable& table = cpu::kernels();
  if (rows.range().zero != 0 || any_zero_) table.finish_i32(f);
  for (int64_t i = 0; i < count; ++i) {
    table.add_scaled_i32(columns_, sums.data() + i * stride, rows.range().scale, scales_.data(),
                         c + i * c_stride);
  }
}

}  // namespace redfuser::cpu
