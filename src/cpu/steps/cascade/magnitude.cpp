#include "cpu/steps/cascade/magnitude.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kBlock = 2048, kTask = 1 << 16;  // elements

// The least and the largest element of a part of the tensor, and zero.
template <typename T>
std::array<double, 2> bounds_of(const Tensor& tensor, Elem elem, int64_t begin, int64_t end) {
  const ConvertFn load = kernels().load[static_cast<int>(tensor.dtype())];
  const ReduceFn* reduce = kernels().reduce[static_cast<int>(elem)];
  const auto bytes = static_cast<int64_t>(redfuser::size_of(tensor.dtype()));
  alignas(64) std::array<T, kBlock> block;
  T least = 0, most = 0;
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t count = std::min(kBlock, end - i);
    load(count, block.data(), static_cast<const char*>(tensor.data()) + i * bytes);
    const Operand elements{block.data(), 0, nullptr};
    reduce[static_cast<int>(ReduceOp::Min)](1, count, &least, elements);
    reduce[static_cast<int>(ReduceOp::Max)](1, count, &most, elements);
  }
  return {static_cast<double>(least), static_cast<double>(most)};
}

}  // namespace

double largest_magnitude(ThreadPool& pool, const Tensor& tensor) {
  const Elem elem = elem_of(tensor.dtype());
  const auto bounds = elem == Elem::F64 ? bounds_of<double> : bounds_of<float>;
  std::vector<double> largest(static_cast<size_t>(ceil_div(tensor.size(), kTask)));
  const double time = magnitude_time(static_cast<double>(tensor.size()));
  pool.parallel_for(
      static_cast<int64_t>(largest.size()),
      [&](int64_t task, int) {
        const int64_t begin = task * kTask, end = std::min(begin + kTask, tensor.size());
        const auto [least, most] = bounds(tensor, elem, begin, end);
        largest[static_cast<size_t>(task)] = std::isnan(least) ? least : std::max(-least, most);
      },
      time - time / pool.size());
  double result = 0;
  for (const double value : largest) {
    if (std::isnan(value)) return value;
    result = std::max(result, value);
  }
  return result;
}

double magnitude_time(double elements, const select::CpuMachine& machine) {
  return elements / machine.bound_rate;
}

}  // namespace redfuser::cpu
