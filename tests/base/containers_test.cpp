#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/half.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/thread_pool.h"
#include "redfuser/error.h"
#include "redfuser/tensor.h"

namespace redfuser {
namespace {

bool is_half_nan(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }

TEST(Half, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = half_to_float(half);
    if (is_half_nan(half)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(is_half_nan(float_to_half(value)));
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);  // a tie with zero goes to even
  EXPECT_EQ(float_to_half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
}

// Between two neighbours the nearest wins, and a tie goes to the even pattern.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    float low = half_to_float(bits), high = half_to_float(bits + 1);
    float middle = low + (high - low) / 2;
    EXPECT_EQ(float_to_half(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(float_to_half(std::nextafter(middle, low)), bits);
    EXPECT_EQ(float_to_half(std::nextafter(middle, high)), bits + 1);
  }
}

TEST(Half, DoubleRoundsOnce) {
  // 1 + 2^-11 is a tie; the tail is lost in float but decides here.
  double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(Half(value).bits, 0x3c01);
  EXPECT_EQ(Half(1.0 + 0x1p-11 - 0x1p-40).bits, 0x3c00);
  EXPECT_EQ(Half(1e300).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<double>::infinity()).bits, 0x7c00);
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16_to_float(0x3f80), 1.0f);
  EXPECT_EQ(float_to_bfloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bfloat16(value), bits);
  }
}

TEST(Tensor, AllocatesAligned) {
  for (int64_t size : {0, 1, 3, 1000}) {
    Tensor tensor(DType::Float16, {size, 2});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
    EXPECT_EQ(tensor.size(), 2 * size);
    EXPECT_EQ(tensor.bytes(), static_cast<size_t>(4 * size));
  }
  EXPECT_EQ(Tensor(DType::Int8, {}).size(), 1);
}

TEST(Tensor, RefusesImpossibleSizes) {
  EXPECT_THROW(element_count({int64_t{1} << 40, int64_t{1} << 40}), UserError);
  EXPECT_THROW(element_count({-1}), UserError);
  EXPECT_EQ(element_count({int64_t{1} << 62, int64_t{1} << 62, 0}), 0);
  EXPECT_THROW(Tensor(DType::Float64, {int64_t{1} << 61}), UserError);
}

TEST(Integers, WrapAndSaturate) {
  EXPECT_EQ(wrapping_sum<int32_t>(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(wrapping_product<int64_t>(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(wrapping_sum(0.5, 0.25), 0.75);
  EXPECT_EQ(saturated<int64_t>(1e30), INT64_MAX);
  EXPECT_EQ(saturated<int64_t>(-INFINITY), INT64_MIN);
  EXPECT_EQ(saturated<uint8_t>(-3.5), 0);
  EXPECT_EQ(saturated<uint8_t>(255.5), 255);
  EXPECT_EQ(saturated<int32_t>(NAN), 0);
  EXPECT_EQ(saturated<int32_t>(-7.9), -7);
}

TEST(Tensor, WrapsAndReshapes) {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  Tensor tensor = Tensor::wrap(DType::Float32, {2, 3}, data.data(), nullptr);
  EXPECT_EQ(tensor.data(), data.data());
  EXPECT_EQ(describe(tensor), "float32[2,3]");
  EXPECT_EQ(describe(tensor.reshaped({6})), "float32[6]");
  EXPECT_EQ(tensor.reshaped({3, 2}).data(), data.data());
  EXPECT_THROW(tensor.reshaped({5}), UserError);
}

TEST(Hash, DependsOnEveryByteAndTheLength) {
  std::set<uint64_t> seen;
  std::vector<char> data(20);
  for (size_t length = 0; length <= data.size(); ++length) {
    seen.insert(hash_bytes(data.data(), length));
  }
  for (char& byte : data) {
    byte = 1;
    seen.insert(hash_bytes(data.data(), data.size()));
    byte = 0;
  }
  EXPECT_EQ(seen.size(), 41u);
}

class ThreadPoolTest : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (int64_t tasks : {0, 1, 2, 7, 1000}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> hits(tasks);
      pool.parallel_for(tasks, [&](int64_t task, int worker) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, pool.size());
        ++hits[task];
      });
      for (auto& count : hits) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST_P(ThreadPoolTest, RethrowsAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto fail = [](int64_t task, int) {
      if (task == 3) throw std::runtime_error("three");
    };
    EXPECT_THROW(pool.parallel_for(100, fail), std::runtime_error);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t task, int) { sum += task; });
    EXPECT_EQ(sum.load(), 4950);
  }
}

TEST_P(ThreadPoolTest, WakesAfterSleeping) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> count{0};
    pool.parallel_for(64, [&](int64_t, int) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      ++count;
    });
    EXPECT_EQ(count.load(), 64);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace redfuser
