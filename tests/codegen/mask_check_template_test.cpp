// The kernel before attention with exact masks by itself: src/device/attention/mask_check.cuh with
// bounds written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr const char* kKernels = R"(
extern "C" __global__ void __launch_bounds__(512)
one(float* found, unsigned* counter, const T* x, long long count) {
  check_masks<512>(found, counter, [&](const float* largest) { return largest[0] < INFINITY_F; },
                   mask_operand(x, count));
}
extern "C" __global__ void __launch_bounds__(128)
bounded(float* found, unsigned* counter, const T* q, const T* k, const float* v, long long count,
        double limit) {
  check_masks<128>(found, counter, [&](const float* largest) {
    const double scores = static_cast<double>(largest[0]) * static_cast<double>(largest[1]);
    return largest[2] < INFINITY_F && scores < limit;
  }, mask_operand(q, count), mask_operand(k, count), mask_operand(v, 2 * count));
}
)";

class MaskCheckTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(MaskCheckTemplate, CompilesWithBoundsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr std::string_view kHeaders[] = {"device/attention/mask_check.cuh"};
  for (const char* type : {"float", "half_t", "bfloat_t"}) {
    expect_in_registers(
        codegen::device_prelude(kHeaders) + fmt::format("using T = {};\n", type) + kKernels,
        GetParam().architecture, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, MaskCheckTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
