// Convolutions of 8-bit integers on a GPU against the CPU: the same integers. Skipped where there
// is no GPU.
#include "redfuser/compare.h"
#include "runtime/gpu/executor.h"
#include "support/integer_convolutions.h"

namespace redfuser {
namespace {

class CudaIntegerConvolution : public testing::TestWithParam<IntegerProductGraph> {};

TEST_P(CudaIntegerConvolution, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  Session gpu(program, {.device = "cuda"}), cpu(program);
  for (const int64_t m : {1, 2, 17}) {
    const NamedTensors inputs = integer_product_inputs(model, m);
    const NamedTensors got = gpu.run(inputs), expected = cpu.run(inputs);
    Tolerance tolerance;
    const bool rounds = expected.at("y").dtype() == DType::Float32;
    tolerance.relative = rounds ? 1e-6 : 0;
    tolerance.absolute = rounds ? 1e-5 : 0;
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << m << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaIntegerConvolution,
                         testing::ValuesIn(integer_convolution_graphs()), name_of_integers);

}  // namespace
}  // namespace redfuser
