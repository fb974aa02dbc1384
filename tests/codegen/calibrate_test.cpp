// The kernels of src/device/calibrate.cuh: they compile for every architecture of the table.
#include "codegen/core/kernel_text.h"
#include "cuda/nvrtc.h"
#include "select/machine.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

TEST(CodegenCalibrate, CompilesForEveryMachineOfTheTable) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  static constexpr std::string_view kHeaders[] = {"ptx", "calibrate"};
  const std::string text = codegen::device_prelude(kHeaders);
  for (const select::NamedMachine& known : select::known_machines()) {
    const std::string code =
        cuda::compile(text, cuda::compile_options(known.machine.architecture), "calibrate.cu");
    for (const char* kernel : {"calibrate_fill", "calibrate_copy", "calibrate_read",
                               "calibrate_fma", "calibrate_exp2", "calibrate_nothing"}) {
      EXPECT_NE(code.find(kernel), std::string::npos) << kernel << " for " << known.name;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
