// Radix sort by itself: src/device/ranking/ranking_radix.cuh with functors written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/ranking/ranking_radix.cuh"};

struct Sort {
  const char *name, *element, *key;
  bool largest;
  int first, last;  // bits of the digits of the first and the last pass
  int elements;     // of a thread in a pass
};

constexpr Sort kSorts[] = {
    {"floats", "float", "unsigned", true, 0, 24, 16},
    {"smallest_integers", "long long", "unsigned long long", false, 0, 56, 8},
};

// The digits of all passes; then the first pass, one between, and the last.
std::string text(const Sort& sort) {
  std::string kernels;
  for (const int bit : {sort.first, sort.first + 8, sort.last}) {
    kernels += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(kDigits) pass{0}(\n"
        "    Sort sort, long long length, RadixPass<Sort::Key> pass) {{\n"
        "  radix_scatter<Sort, {0}, {1}, {2}, {3}>(sort, length, pass);\n}}\n",
        bit, bit == sort.first, bit == sort.last, sort.elements);
  }
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Sort {{\n"
             "  using Key = {};\n"
             "  const {}* x;\n"
             "  long long length;\n"
             "  __device__ Key key(long long row, unsigned at) const {{\n"
             "    return rank_key<{}>(x[row * length + at]);\n  }}\n}};\n"
             "extern \"C\" __global__ void __launch_bounds__(kDigits) count(\n"
             "    Sort sort, long long length, unsigned* digits) {{\n"
             "  radix_count<Sort, {}, kDigits, 32>(sort, length, digits);\n}}\n",
             sort.key, sort.element, sort.largest, sort.first) +
         kernels;
}

class RadixTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(RadixTemplate, CompilesWithAFunctorWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Sort& sort : kSorts) {
    expect_in_registers(text(sort), GetParam().architecture, sort.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, RadixTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
