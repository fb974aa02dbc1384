// Resizing is part of a map: one launch with what is around it, for any size.
#include "codegen_harness.h"
#include "text_model.h"

namespace redfuser::codegen_tests {
namespace {

std::string resize(const std::string& type, const std::string& mode) {
  return "g (" + type + "[b,8,h,w] x) => (" + type + R"([b,8,p,q] y)
    <float[4] scales = {1,1,2,1.5}> {
      r = Relu (x)
      z = Resize <mode = ")" +
         mode + R"("> (r, , scales)
      y = Mul (z, z)
    })";
}

constexpr int kDivisionSpill = 64;  // bytes: 64-bit divisions by sizes are calls

TEST(CodegenResize, OneLaunchCompilesForEveryArchitecture) {
  for (const char* type : {"float", "float16"}) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      const TextModel model(resize(type, mode));
      for (const Architecture& architecture : kArchitectures) {
        const GeneratedModel generated = generate_model(model.path(), architecture.target);
        EXPECT_EQ(generated.launches, 1) << type << " " << mode;
        if (Compiler::find()) expect_compiles(generated.kernels, architecture.name, kDivisionSpill);
      }
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
