// The search for elements that come before others, of every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

template <typename T>
bool comes_before(T x, T bound, bool largest) {
  if (x != x) return bound == bound;
  return bound == bound && (largest ? x > bound : x < bound);
}

template <typename T>
void expect_first(const cpu::KernelTable& table, cpu::Elem elem) {
  std::mt19937 random(9);
  for (int round = 0; round < 400; ++round) {
    const auto count = static_cast<int64_t>(random() % 300);
    std::vector<T> x(static_cast<size_t>(count) + 1);
    // Mostly equal elements, so that the first one is anywhere.
    for (T& e : x) e = static_cast<T>(random() % 100 ? 50 : random() % 100);
    if constexpr (std::is_floating_point_v<T>) {
      if (round % 5 == 0) x[random() % x.size()] = std::numeric_limits<T>::quiet_NaN();
    }
    const T bound = x[random() % 4 ? x.size() - 1 : random() % x.size()];
    for (const bool largest : {false, true}) {
      const int64_t begin = count == 0 ? 0 : static_cast<int64_t>(random() % x.size()) % count;
      int64_t expected = begin;
      while (expected < count && !comes_before(x[static_cast<size_t>(expected)], bound, largest)) {
        ++expected;
      }
      EXPECT_EQ(table.next_before[static_cast<int>(elem)](x.data(), begin, count, &bound, largest),
                expected)
          << table.name << ", " << count << " elements from " << begin;
    }
  }
}

TEST(Rank, FindsTheFirstElementBeforeAnother) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    expect_first<float>(*table, cpu::Elem::F32);
    expect_first<double>(*table, cpu::Elem::F64);
    expect_first<int32_t>(*table, cpu::Elem::I32);
    expect_first<int64_t>(*table, cpu::Elem::I64);
    expect_first<uint64_t>(*table, cpu::Elem::U64);
    expect_first<uint8_t>(*table, cpu::Elem::Bool);
  }
}

}  // namespace
}  // namespace redfuser
