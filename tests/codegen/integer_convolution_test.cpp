// Convolutions of 8-bit integers: of one group by the tensor cores, of several by plain sums, in
// kernels that compile without spills on every architecture; no step stays on the host.
#include "codegen/convolution/columns_product.h"
#include "codegen/integer_product/integer_config.h"
#include "support/codegen_harness.h"
#include "support/integer_convolutions.h"

namespace redfuser::codegen_tests {
namespace {

class CodegenIntegerConvolutions : public ::testing::TestWithParam<IntegerProductGraph> {};

TEST_P(CodegenIntegerConvolutions, HaveTheKernelOfTheirFamily) {
  const bool grouped = GetParam().text.find("group = 1>") == std::string::npos &&
                       GetParam().text.find("group = ") != std::string::npos;
  const std::string family = grouped ? codegen::kGroupedFamily : codegen::kIntegerProductFamily;
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    const codegen::Target target = codegen::target_named(name);
    const GeneratedModel model = generate_model(Model::parse(GetParam().text), target);
    const auto of_family = [&](const codegen::KernelLaunch& kernel) {
      return kernel.family == family;
    };
    EXPECT_TRUE(std::any_of(model.kernels.begin(), model.kernels.end(), of_family)) << name;
    if (Compiler::find()) expect_compiles(model.kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenIntegerConvolutions,
                         ::testing::ValuesIn(integer_convolution_graphs()), name_of_integers);

}  // namespace
}  // namespace redfuser::codegen_tests
