// Sums of integers as floats (scale_integers) of every instruction set, against the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu/simd/integers/integer_gemm.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

// Of a float s as the contract of Activation has it. Every operation but an exponential rounds.
float activated(const cpu::Activation& a, float s) {
  if (!a.any) return s;
  float t = s;
  if (a.affine) t = t * static_cast<float>(a.scale) + static_cast<float>(a.shift);
  if (a.logistic) {
    t = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(t))));
  } else {
    t = std::min(std::max(t, static_cast<float>(a.low)), static_cast<float>(a.high));
  }
  return a.gates ? s * t : t;
}

cpu::Activation activation(bool affine, bool gates, bool logistic, double low, double high) {
  cpu::Activation a;
  a.any = true;
  a.affine = affine;
  a.gates = gates;
  a.logistic = logistic;
  if (affine) a.scale = 0.125, a.shift = 0.5;
  a.low = low;
  a.high = high;
  return a;
}

TEST(IntegerScale, EveryKernelIsTheDefinition) {
  constexpr double kNone = HUGE_VAL;
  const cpu::Activation activations[] = {{},
                                         activation(false, false, false, 0, kNone),
                                         activation(false, false, false, -1, 6),
                                         activation(true, false, false, 0, 1),
                                         activation(true, true, false, 0, 1),
                                         activation(true, false, true, -kNone, kNone),
                                         activation(true, true, true, -kNone, kNone)};
  constexpr int64_t kRows = 3, kStride = 150;
  std::mt19937 random(3);
  std::vector<int32_t> c(kRows * kStride);
  std::vector<float> beside(kRows * kStride), scales, offsets;
  for (int32_t& x : c) x = static_cast<int32_t>(random() % 40000) - 20000;
  for (float& x : beside) x = static_cast<float>(random() % 1000) * 0.01f - 5;
  for (int64_t i = 0; i < kRows; ++i) {
    scales.push_back(0.0003f + 0.0001f * static_cast<float>(i));
    offsets.push_back(0.7f - static_cast<float>(i));
  }
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const cpu::Activation& each : activations) {
      for (int64_t count : {1, 7, 16, 33, 64, 131}) {
        for (int form = 0; form < 8; ++form) {
          const bool adds = form & 1, has_offsets = form & 2;
          const int64_t step = form & 4 ? 1 : 0;
          std::vector<float> out(kRows * kStride, -1e9f);
          cpu::IntegerScaleArgs args;
          args.rows = kRows;
          args.count = count;
          args.c = c.data();
          args.c_stride = kStride;
          args.scales = scales.data();
          args.offsets = has_offsets ? offsets.data() : nullptr;
          args.scale_step = args.offset_step = step;
          args.each = each;
          args.each.adds = adds;
          args.residual = adds ? beside.data() : nullptr;
          args.out = out.data();
          args.out_stride = kStride;
          table->scale_integers(args);
          for (int64_t i = 0; i < kRows; ++i) {
            for (int64_t j = 0; j < kStride; ++j) {
              const auto at = static_cast<size_t>(i * kStride + j);
              const auto row = static_cast<size_t>(i * step);
              const volatile float product = static_cast<float>(c[at]) * scales[row];
              float s = has_offsets ? product + offsets[row] : product;
              if (adds) s = s + beside[at];
              const float wanted = j < count ? activated(each, s) : -1e9f;
              const float room = each.logistic ? 4e-7f * std::fabs(wanted) : 0;
              ASSERT_NEAR(out[at], wanted, room)
                  << table->name << ", " << count << " columns, form " << form << ", " << j;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
