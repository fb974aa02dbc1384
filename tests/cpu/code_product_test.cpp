// Products of 8-bit floats on the CPU, against the same graphs node by node in double precision.
#include "redfuser/compare.h"
#include "support/code_product_inputs.h"

namespace redfuser {
namespace {

class CodeProduct : public testing::TestWithParam<CodeProductGraph> {};

TEST_P(CodeProduct, AgreesWithTheReference) {
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "reference";
  Session reference(program, options), cpu(program);
  for (const int64_t m : {1, 5, 67}) {
    const NamedTensors inputs = code_product_inputs(model, m);
    expect_near(cpu.run(inputs), reference.run(inputs));
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodeProduct, testing::ValuesIn(code_product_graphs()),
                         name_of_product);

}  // namespace
}  // namespace redfuser
