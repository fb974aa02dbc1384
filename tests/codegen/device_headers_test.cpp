// The headers of src/device: each compiles by itself, for every architecture of the table.
#include "codegen/core/device_text.h"
#include "cuda/nvrtc.h"
#include "redfuser/error.h"
#include "select/machine.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

std::string compiled(std::string_view header, int architecture) {
  return cuda::compile(codegen::device_prelude({&header, 1}), cuda::compile_options(architecture),
                       "header.cu");
}

TEST(DeviceHeaders, EachCompilesAlone) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const codegen::DeviceHeader& header : codegen::device_headers()) {
    for (const int architecture : {80, 90}) {
      EXPECT_NO_THROW(compiled(header.name, architecture)) << header.name;
    }
  }
}

TEST(DeviceHeaders, AHeaderIsThereOnceAndBehindItsOwn) {
  const std::string_view names[] = {"device/reduce.cuh", "device/types.cuh", "device/math.cuh"};
  const std::string text = codegen::device_prelude(names);
  EXPECT_EQ(text.find("#include"), std::string::npos);
  size_t at = 0;
  for (const char* function :
       {"float ptx_exp2(", "float max_of(", "struct SumOp", "struct half_t"}) {
    const size_t found = text.find(function);
    ASSERT_NE(found, std::string::npos) << function;
    EXPECT_GE(found, at) << function;
    at = found;
  }
  EXPECT_EQ(text.find("float max_of(float"), text.rfind("float max_of(float"));
  const std::string_view missing[] = {"device/none.cuh"};
  EXPECT_THROW(codegen::device_prelude(missing), InternalError);
}

TEST(DeviceHeaders, CalibrationCompilesForEveryMachineOfTheTable) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const select::NamedMachine& known : select::known_machines()) {
    const std::string code = compiled("device/calibrate.cuh", known.machine.architecture);
    for (const char* kernel : {"calibrate_fill", "calibrate_copy", "calibrate_read",
                               "calibrate_fma", "calibrate_exp2", "calibrate_nothing"}) {
      EXPECT_NE(code.find(kernel), std::string::npos) << kernel << " for " << known.name;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
