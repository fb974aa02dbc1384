#include "passes/weights/block_numbers.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/half.h"

namespace redfuser::passes {
namespace {

// Adding `offset` makes unsigned numbers of so many bits of signed ones.
struct Range {
  int bits, offset;
};
constexpr Range kRanges[] = {{4, 0}, {4, 8}, {8, 0}, {8, 128}};

// Rounded to the type.
float as_number(float x, DType dtype) {
  if (dtype == DType::Float16) return half_to_float(float_to_half(x));
  return dtype == DType::BFloat16 ? bfloat16_to_float(float_to_bfloat16(x)) : x;
}

// Whether the elements of the lines are what the numbers give. Memory is read in its order where
// the lines are few enough for a cache.
template <typename Number>
bool gives_lines(const ir::WeightCodes& codes, const Number* elements, int64_t first,
                 int64_t last) {
  const bool across = codes.depth_axis == 0;
  const int64_t line_step = across ? 1 : codes.depth, depth_step = across ? codes.lines : 1;
  const auto* scales = codes.scales.as<float>();
  const auto* zeros = codes.zeros.defined() ? codes.zeros.as<uint8_t>() : nullptr;
  bool same = true;
  for (int64_t begin = 0; begin < codes.depth && same; begin += codes.block) {
    const int64_t end = std::min(begin + codes.block, codes.depth);
    for (int64_t line = first; line < last; ++line) {
      const int64_t block = line * codes.blocks() + begin / codes.block;
      const int zero = zeros != nullptr ? zeros[block] : codes.zero;
      const auto* row = codes.codes.as<uint8_t>() + line * codes.depth;
      const Number* to = elements + line * line_step;
      for (int64_t k = begin; k < end; ++k) {
        const auto given = static_cast<Number>(static_cast<float>(row[k] - zero) * scales[block]);
        same &= static_cast<float>(given) == static_cast<float>(to[k * depth_step]);
      }
    }
  }
  return same;
}

template <typename Number>
bool gives_numbers(const ir::WeightCodes& codes, const Tensor& constant, ThreadPool& threads) {
  constexpr int64_t kLines = 64;  // of a task: blocks of them are in the first cache
  const auto* elements = static_cast<const Number*>(constant.data());
  std::atomic<bool> same = true;
  threads.parallel_for((codes.lines + kLines - 1) / kLines, [&](int64_t task, int) {
    const int64_t first = task * kLines, last = std::min(first + kLines, codes.lines);
    if (same && !gives_lines(codes, elements, first, last)) same = false;
  });
  return same;
}

}  // namespace

bool set_codes(ir::WeightCodes& codes, const Tensor& integers, const Tensor& zeros) {
  const auto *numbers = integers.as<int32_t>(), *numbers_end = numbers + integers.size();
  const auto *points = zeros.as<float>(), *points_end = points + zeros.size();
  const auto [low, high] = std::minmax_element(numbers, numbers_end);
  const auto [low_zero, high_zero] = std::minmax_element(points, points_end);
  if (!std::all_of(points, points_end, [](float x) { return x == std::nearbyint(x); })) {
    return false;
  }
  const auto* range = std::find_if(std::begin(kRanges), std::end(kRanges), [&](const Range& r) {
    const int most = (1 << r.bits) - 1;
    const auto inside = [&](double x) { return x + r.offset >= 0 && x + r.offset <= most; };
    return inside(*low) && inside(*high) && inside(*low_zero) && inside(*high_zero);
  });
  if (range == std::end(kRanges)) return false;
  codes.bits = range->bits;
  codes.codes = Tensor(DType::UInt8, {codes.lines, codes.depth});
  auto* to = codes.codes.as<uint8_t>();
  std::transform(numbers, numbers_end, to,
                 [&](int32_t x) { return static_cast<uint8_t>(x + range->offset); });
  codes.zero = static_cast<int>(*low_zero) + range->offset;
  if (*low_zero == *high_zero) return true;
  codes.zeros = Tensor(DType::UInt8, {codes.lines, codes.blocks()});
  std::transform(points, points_end, codes.zeros.as<uint8_t>(), [&](float x) {
    return static_cast<uint8_t>(static_cast<int>(x) + range->offset);
  });
  return true;
}

bool set_scales(ir::WeightCodes& codes, const Tensor& scales, DType dtype) {
  codes.scales = scales;
  const float* numbers = scales.as<float>();
  return std::all_of(numbers, numbers + scales.size(),
                     [&](float x) { return std::isfinite(x) && x == as_number(x, dtype); });
}

bool gives(const ir::WeightCodes& codes, const Tensor& constant, ThreadPool& threads) {
  switch (constant.dtype()) {
    case DType::Float16:
      return gives_numbers<Half>(codes, constant, threads);
    case DType::BFloat16:
      return gives_numbers<BFloat16>(codes, constant, threads);
    default:
      return gives_numbers<float>(codes, constant, threads);
  }
}

}  // namespace redfuser::passes
