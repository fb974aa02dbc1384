// The main loop of contractions by itself: src/device/contraction/contraction.cuh on the host, by
// one thread and by threads that meet at barriers, and compiled with functors written by hand.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

// Device code on the host.
#define __device__
#define __forceinline__ inline
#define asm(...) static_cast<void>(a + b)
namespace contraction_device {
struct Dim {
  unsigned x;
};
thread_local Dim threadIdx{0}, blockIdx{0}, gridDim{1};
std::barrier<>* meeting = nullptr;
inline float ptx_exp2(float x) { return std::exp2(x); }
inline float ptx_reciprocal(float x) { return 1 / x; }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int) {
  return value;
}
inline void __syncthreads() { meeting->arrive_and_wait(); }
#include "device/contraction/contraction.cuh"
}  // namespace contraction_device
#undef asm
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

using contraction_device::ContractionSizes;
using contraction_device::ContractionStage;
using contraction_device::ContractionTile;
using contraction_device::ProdOp;
using contraction_device::SumOp;
using Results = std::vector<double>;

double a_of(long long batch, long long m, long long k) {
  return static_cast<double>((batch * 7 + m * 5 + k * 3) % 11) - 4;
}
double b_of(long long batch, long long n, long long k) {
  return static_cast<double>((batch * 5 + n * 3 + k * 7) % 13) - 6;
}
// The term is not a product, and the term of two zeros is not 0.
double term_of(double a, double b) { return std::fabs(a - b) + 1; }

Results expected(const ContractionSizes& sizes) {
  Results results;
  for (long long batch = 0; batch < sizes.batch; ++batch) {
    for (long long m = 0; m < sizes.rows; ++m) {
      for (long long n = 0; n < sizes.columns; ++n) {
        double sum = 0;
        for (long long k = 0; k < sizes.depth; ++k) {
          sum += term_of(a_of(batch, m, k), b_of(batch, n, k));
        }
        results.push_back(sum);
      }
    }
  }
  return results;
}

// By `blocks` blocks, one after the other. Every result is stored once.
template <class Tile>
Results by_tiles(const ContractionSizes& sizes, unsigned blocks) {
  Results results(static_cast<size_t>(sizes.batch * sizes.rows * sizes.columns),
                  std::numeric_limits<double>::quiet_NaN());
  static ContractionStage<double, Tile::Rows, Tile::Depth> rows;
  static ContractionStage<double, Tile::Columns, Tile::Depth> columns;
  const auto inside = [&](long long line, long long lines, long long k) {
    EXPECT_TRUE(0 <= line && line < lines && 0 <= k && k < sizes.depth) << line << " " << k;
  };
  const auto run = [&](unsigned block, unsigned thread) {
    contraction_device::threadIdx.x = thread;
    contraction_device::blockIdx.x = block;
    contraction_device::gridDim.x = blocks;
    contraction_device::contract<Tile, SumOp>(
        sizes, 0.0, rows, columns,
        [&](long long batch, long long m, long long k) {
          inside(m, sizes.rows, k);
          return a_of(batch, m, k);
        },
        [&](long long batch, long long n, long long k) {
          inside(n, sizes.columns, k);
          return b_of(batch, n, k);
        },
        term_of,
        [&](long long batch, long long m, long long n, double sum) {
          double& to =
              results.at(static_cast<size_t>((batch * sizes.rows + m) * sizes.columns + n));
          EXPECT_TRUE(std::isnan(to)) << "stored again";
          to = sum;
        });
  };
  for (unsigned block = 0; block < blocks; ++block) {
    std::barrier meeting(Tile::Threads);
    contraction_device::meeting = &meeting;
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < Tile::Threads; ++thread) {
      threads.emplace_back(run, block, thread);
    }
    for (std::thread& thread : threads) thread.join();
  }
  return results;
}

template <class Tile>
void expect_results() {
  std::mt19937 random(3);
  const auto below = [&](unsigned count) { return static_cast<long long>(random() % count); };
  for (int drawn = 0; drawn < 25; ++drawn) {
    const ContractionSizes sizes{1 + below(3), 1 + below(20), 1 + below(20), below(30)};
    SCOPED_TRACE(
        fmt::format("{} of {}x{}, {} terms", sizes.batch, sizes.rows, sizes.columns, sizes.depth));
    EXPECT_EQ(by_tiles<Tile>(sizes, 1 + static_cast<unsigned>(below(5))), expected(sizes));
  }
}

TEST(ContractionTemplate, OneThreadHasATile) {
  expect_results<ContractionTile<4, 8, 4, 4, 8, false, false, 0>>();
}

TEST(ContractionTemplate, ThreadsShareATile) {
  expect_results<ContractionTile<8, 8, 4, 2, 4, false, false, 0>>();
  expect_results<ContractionTile<8, 4, 8, 2, 2, true, false, 0>>();
  expect_results<ContractionTile<4, 8, 2, 1, 4, false, true, 0>>();
}

TEST(ContractionTemplate, PartsAreAdded) {
  expect_results<ContractionTile<8, 8, 4, 4, 4, true, true, 8>>();
}

// 2^24 and 1 are lost where they meet one by one.
TEST(ContractionTemplate, LongSumsAreAddedInParts) {
  using Tile = ContractionTile<1, 1, 4, 1, 1, false, false, 4096>;
  std::barrier meeting(1);
  contraction_device::meeting = &meeting;
  ContractionStage<float, 1, 4> rows, columns;
  float result = 0;
  const auto one = [](long long, long long, long long) { return 1.0f; };
  contraction_device::contract<Tile, SumOp>(
      {1, 1, 1, (1 << 24) + 8}, 0.0f, rows, columns, one, one,
      [](float a, float b) { return a * b; },
      [&](long long, long long, long long, float sum) { result = sum; });
  EXPECT_EQ(result, 0x1p24f + 8);
}

TEST(ContractionTemplate, NoTermsAreTheIdentity) {
  using Tile = ContractionTile<2, 2, 2, 2, 2, false, false, 0>;
  std::barrier meeting(1);
  contraction_device::meeting = &meeting;
  ContractionStage<float, 2, 2> rows, columns;
  int stored = 0;
  const auto never = [](long long, long long, long long) -> float {
    ADD_FAILURE() << "an element";
    return 0;
  };
  contraction_device::contract<Tile, ProdOp>(
      {1, 2, 1, 0}, 1.0f, rows, columns, never, never, [](float a, float b) { return a * b; },
      [&](long long, long long, long long, float product) {
        ++stored;
        EXPECT_EQ(product, 1);
      });
  EXPECT_EQ(stored, 2);
}

constexpr const char* kKernel = R"(
struct A {
  ValueOf<T> value;
};
struct B {
  ValueOf<T> value;
  bool hidden;
};
using Tile = ContractionTile<64, 64, 16, 4, 4, true, false, 4096>;
extern "C" __global__ void __launch_bounds__(Tile::Threads, 1)
contraction(const T* a, const T* b, T* c, ContractionSizes sizes) {
  using Value = ValueOf<T>;
  __shared__ __align__(16) ContractionStage<A, Tile::Rows, Tile::Depth> rows;
  __shared__ __align__(16) ContractionStage<B, Tile::Columns, Tile::Depth> columns;
  contract<Tile, MaxOp, Value>(
      sizes, Value(0), rows, columns,
      [&](long long batch, long long m, long long k) {
        return A{load(a, (batch * sizes.rows + m) * sizes.depth + k)};
      },
      [&](long long batch, long long n, long long k) {
        const Value value = load(b, (batch * sizes.depth + k) * sizes.columns + n);
        return B{value, value == Value(0)};
      },
      [&](const A& a, const B& b) { return b.hidden ? Value(0) : a.value - b.value; },
      [&](long long batch, long long m, long long n, Value value) {
        store(c, (batch * sizes.rows + m) * sizes.columns + n, value);
      });
}
)";

class ContractionTemplateOf : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ContractionTemplateOf, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/contraction/contraction.cuh",
                                           "device/types.cuh"};
  for (const char* type : {"float", "half_t", "double", "int"}) {
    const std::string text =
        codegen::device_prelude(kHeaders) + fmt::format("using T = {};\n", type) + kKernel;
    expect_in_registers(text, GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ContractionTemplateOf, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
