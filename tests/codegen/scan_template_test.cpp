// Running reductions by themselves: src/device/scan.cuh and scan_chain.cuh with functors written by
// hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/scan_chain.cuh"};

// A functor of an operation: floats or doubles of adjacent elements of lines, or of lines beside
// each other (kBeside), in groups of four.
constexpr const char* kScan = R"(
struct Scan {
  using State = Value;
  using Op = Combine;
  static constexpr int kWidth = 4;
  static constexpr bool kReverse = kBackwards, kExclusive = kBackwards;
  const Value* x;
  Value* y;
  long long length, columns;
  static __device__ State identity() { return kIdentity; }
  __device__ long long place(long long line, long long position, long long column) const {
    return kBeside ? (line * length + position) * columns + column : line * length + position;
  }
  __device__ void fetch(long long line, long long position, long long column, long long valid,
                        State (&values)[kWidth]) const {
    const long long from = place(line, position, column);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      const bool exists = v < valid && (kBeside || position + v >= 0);
      values[v] = exists ? x[from + v] : kIdentity;
    }
  }
  __device__ void finish(long long line, long long position, long long column, long long valid,
                         const State (&values)[kWidth]) const {
    const long long to = place(line, position, column);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      if (v < valid && (kBeside || position + v >= 0)) y[to + v] = values[v];
    }
  }
};
)";

struct Operation {
  const char *value, *combine, *identity;
};
constexpr Operation kOperations[] = {{"float", "SumOp", "0"}, {"double", "MaxOp", "-1e300"}};

struct Loop {
  const char *name, *beside, *call;
  int threads;
};

constexpr Loop kLoops[] = {
    {"lanes", "false", "scan_lines<Scan, 8, 128, 4>(scan, lines, length, nullptr)", 128},
    {"block", "false", "scan_lines<Scan, 256, 256, 2>(scan, lines, length, slots)", 256},
    {"columns", "true", "scan_columns<Scan, 8, 16, 4>(scan, columns, length, slots)", 128},
    {"lines_of_blocks", "false",
     "scan_lines_shared<Scan, 256, 2>(scan, lines, length, words, slots, parts, &number)", 256},
    {"columns_of_blocks", "true",
     "scan_columns_shared<Scan, 8, 16, 4>(scan, lines, columns, length, words, slots, &number)",
     128},
};

std::string kernel(const Loop& loop, const Operation& operation, bool backwards) {
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "using Value = {};\nusing Combine = {};\nconstexpr Value kIdentity = {};\n"
             "constexpr bool kBackwards = {}, kBeside = {};\n",
             operation.value, operation.combine, operation.identity, backwards, loop.beside) +
         kScan +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__({}, 1) loop(const Value* x, Value* "
             "y,\n"
             "    long long lines, long long length, long long columns,\n"
             "    unsigned long long* words) {{\n"
             "  __shared__ Value slots[1024];\n  __shared__ unsigned number;\n"
             "  __shared__ __align__(16) char parts[8 * kSlotBytes];\n"
             "  const Scan scan{{x, y, length, columns}};\n  {};\n}}\n",
             loop.threads, loop.call);
}

class ScanTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ScanTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Loop& loop : kLoops) {
    for (const Operation& operation : kOperations) {
      for (const bool backwards : {false, true}) {
        expect_in_registers(kernel(loop, operation, backwards), GetParam().architecture, loop.name);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ScanTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
