// Maxima and minima of rows, and products with few rows, by the kernels of every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "redfuser/tensor.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

constexpr int64_t kLengths[] = {1, 15, 16, 17, 31, 63, 64, 65, 100, 127, 128, 130, 2047, 4099};

float extreme_of(const std::vector<float>& x, float first, bool largest) {
  float result = first;
  for (const float v : x) {
    if (std::isnan(result)) break;
    if (std::isnan(v) || (largest ? v > result : v < result)) result = v;
  }
  return result;
}

// Rows with a NaN at each of some places, and without one.
TEST(ReduceKernels, ExtremesKeepNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(2);
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const int64_t cols : kLengths) {
      for (const bool largest : {true, false}) {
        const cpu::ReduceFn reduce =
            table->reduce[static_cast<int>(cpu::Elem::F32)]
                         [static_cast<int>(largest ? cpu::ReduceOp::Max : cpu::ReduceOp::Min)];
        for (int trial = 0; trial < 40; ++trial) {
          std::vector<float> x(static_cast<size_t>(cols));
          for (float& v : x) v = static_cast<float>(random() % 2001) - 1000;
          x[random() % x.size()] = largest ? -kInfinity : kInfinity;
          const bool nan = trial % 2 == 0;
          if (nan) x[trial == 0 ? x.size() - 1 : random() % x.size()] = NAN;
          float total = largest ? -kInfinity : kInfinity;
          const float expected = extreme_of(x, total, largest);
          reduce(1, cols, &total, {x.data(), cols, nullptr});
          if (nan) {
            ASSERT_TRUE(std::isnan(total)) << table->name << " " << cols;
          } else {
            ASSERT_EQ(total, expected) << table->name << " " << cols;
          }
        }
      }
    }
  }
}

// Whole numbers, whose sums are exact, in a B whose rows begin anywhere.
TEST(GemmKernels, FewRowsAreExact) {
  std::mt19937 random(4);
  const auto number = [&] { return static_cast<float>(random() % 17) - 8; };
  std::vector<char> memory(cpu::kGemmScratchBytes + 64);
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const int64_t m : {1, 2, 3, 4}) {
      for (const int64_t n : {1, 17, 127, 128, 300}) {
        for (const int64_t k : {1, 3, 4, 5, 33}) {
          const bool accumulate = random() % 2 == 0;
          std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n + 1));
          std::vector<float> c(static_cast<size_t>(m * n));
          for (auto* all : {&a, &b, &c}) {
            for (float& v : *all) v = number();
          }
          std::vector<float> expected = c;
          for (int64_t i = 0; i < m * n; ++i) {
            float sum = accumulate ? c[static_cast<size_t>(i)] : 0;
            for (int64_t p = 0; p < k; ++p) {
              sum +=
                  a[static_cast<size_t>(i / n * k + p)] * b[static_cast<size_t>(1 + p * n + i % n)];
            }
            expected[static_cast<size_t>(i)] = sum;
          }
          cpu::GemmArgs g;
          const auto type = static_cast<uint8_t>(DType::Float32);
          g.m = m, g.n = n, g.k = k, g.c = c.data(), g.c_stride = n, g.accumulate = accumulate;
          g.a = {a.data(), type, k, 1, nullptr, nullptr};
          g.b = {b.data() + 1, type, n, 1, nullptr, nullptr};
          g.scratch = memory.data() + (64 - begin % 64) % 64;
          table->gemm_f32(g);
          ASSERT_EQ(c, expected) << table->name << " " << m << "x" << k << "x" << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
