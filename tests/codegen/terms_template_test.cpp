// Reductions within an expression by themselves: src/device/terms.cuh on the host, and compiled
// with terms written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

// Device code on the host, where a thread is alone.
#define __device__
#define __forceinline__ inline
#define asm(...) static_cast<void>(a + b)
namespace terms_device {
struct Dim {
  unsigned x;
};
Dim threadIdx{0};
inline float ptx_exp2(float x) { return std::exp2(x); }
inline float ptx_reciprocal(float x) { return 1 / x; }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int) {
  return value;
}
inline void __syncthreads() {}
#include "device/terms.cuh"
}  // namespace terms_device
#undef asm
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

using terms_device::ranked_term;
using terms_device::reduce_terms;
using terms_device::SumOp;

TEST(TermsTemplate, NoTermsAreTheIdentity) {
  const auto never = [](long long) -> float {
    ADD_FAILURE() << "a term";
    return 0;
  };
  EXPECT_EQ((reduce_terms<SumOp, 1, 0, float>(7, 0, never)), 7);
  EXPECT_EQ((reduce_terms<SumOp, 1, 4, float>(7, 0, never)), 7);
}

// 2^24 and 1 are lost where they meet one by one.
TEST(TermsTemplate, LongSumsAreAddedInParts) {
  const auto term = [](long long i) { return i < 3 ? 0x1p24f / 3 : 1.0f; };
  const auto one = [](long long) { return 1.0f; };
  EXPECT_EQ((reduce_terms<SumOp, 1, 0, float>(0, (1 << 24) + 8, one)), 0x1p24f);
  EXPECT_EQ((reduce_terms<SumOp, 1, 4096, float>(0, (1 << 24) + 8, one)), 0x1p24f + 8);
  for (const long long count : {1, 3, 4, 5, 1000}) {
    float expected = 0;
    for (long long first = 0; first < count; first += 4) {
      float part = 0;
      for (long long i = first; i < std::min(first + 4, count); ++i) part += term(i);
      expected += part;
    }
    EXPECT_EQ((reduce_terms<SumOp, 1, 4, float>(0, count, term)), expected) << count;
  }
}

// NaN first, then the value, then the lower index.
template <bool Large>
void expect_ranks(const std::vector<float>& values) {
  std::vector<long long> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<long long>(i);
  std::stable_sort(order.begin(), order.end(), [&](long long a, long long b) {
    const float x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
    return Large ? x > y : x < y;
  });
  const auto term = [&](long long i) { return values.at(static_cast<size_t>(i)); };
  const auto count = static_cast<long long>(values.size());
  for (long long rank = 0; rank < count; ++rank) {
    EXPECT_EQ((ranked_term<Large, float>(rank, count, term).index),
              order[static_cast<size_t>(rank)])
        << rank;
  }
}

TEST(TermsTemplate, RanksAreThoseOfAStableSort) {
  std::mt19937 random(3);
  for (int drawn = 0; drawn < 50; ++drawn) {
    std::vector<float> values(1 + random() % 12);
    for (float& value : values) {
      const auto number = random() % 6;
      value = number == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(number);
    }
    SCOPED_TRACE(drawn);
    expect_ranks<true>(values);
    expect_ranks<false>(values);
  }
  EXPECT_EQ((ranked_term<true, float>(0, 0, [](long long) { return 1.0f; }).index), -1);
}

constexpr const char* kKernels = R"(
extern "C" __global__ void __launch_bounds__(256)
terms(const T* x, T* y, long long* places, long long count) {
  const long long row = blockIdx.x;
  const auto term = [&](long long i) { return load(x, row * count + i); };
  using Value = ValueOf<T>;
  const Value sum = reduce_terms<SumOp, 32, 4096, Value>(0, count, term);
  const Value most = reduce_terms<MaxOp, 1, 0, Value>(load(x, row), count, term);
  const auto second = ranked_term<false, Value>(1, count, term);
  store(y, row, sum * most);
  places[row] = second.index;
}
)";

class TermsTemplateOf : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(TermsTemplateOf, CompilesWithTermsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/terms.cuh", "device/types.cuh"};
  for (const char* type : {"float", "half_t", "double", "long long"}) {
    expect_in_registers(
        codegen::device_prelude(kHeaders) + fmt::format("using T = {};\n", type) + kKernels,
        GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, TermsTemplateOf, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
