#include "cpu/recurrent/float_matrix.h"

#include <algorithm>
#include <type_traits>

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

template <typename T>
constexpr bool kSingle = std::is_same_v<T, float>;
template <typename T>
constexpr DType kDType = kSingle<T> ? DType::Float32 : DType::Float64;

}  // namespace

template <typename T>
void FloatRows<T>::assign(const T* base, std::span<const int64_t> offsets, int64_t depth) {
  const size_t count = offsets.size();
  if (count == 0) return;
  data_ = base + offsets[0];
  stride_ = count > 1 ? offsets[1] - offsets[0] : depth;
  bool even = true;
  for (size_t i = 2; i < count; ++i) even &= offsets[i] - offsets[i - 1] == stride_;
  if (even) return;
  copy_.resize(count * static_cast<size_t>(depth));
  for (size_t i = 0; i < count; ++i) {
    std::copy_n(base + offsets[i], depth, copy_.data() + static_cast<int64_t>(i) * depth);
  }
  data_ = copy_.data();
  stride_ = depth;
}

template <typename T>
FloatMatrix<T>::FloatMatrix(const T* data, int64_t depth, std::span<const int64_t> columns)
    : depth_(depth), columns_(static_cast<int64_t>(columns.size())) {
  panels_ = Tensor(kDType<T>, {depth * ((columns_ + 15) / 16 * 16)});
  std::vector<int64_t> offsets(columns.begin(), columns.end());
  for (int64_t& offset : offsets) offset *= depth;
  const MatrixView view = {data, static_cast<uint8_t>(kDType<T>), 1, 0, nullptr, offsets.data()};
  if (panels_.size() == 0) return;
  (kSingle<T> ? kernels().pack_f32 : kernels().pack_f64)(view, depth, columns_, panels_.as<T>());
}

template <typename T>
void FloatMatrix<T>::add(const Rows& rows, int64_t first, int64_t count, T* c,
                         int64_t c_stride) const {
  GemmArgs args;
  args.m = count;
  args.n = columns_;
  args.k = depth_;
  args.a = {rows.row(first), static_cast<uint8_t>(kDType<T>), rows.stride(), 1, nullptr, nullptr};
  args.panels = panels_.data();
  args.c = c;
  args.c_stride = c_stride;
  args.accumulate = true;
  (kSingle<T> ? kernels().gemm_f32 : kernels().gemm_f64)(args);
}

template class FloatRows<float>;
template class FloatRows<double>;
template class FloatMatrix<float>;
template class FloatMatrix<double>;

}  // namespace redfuser::cpu
