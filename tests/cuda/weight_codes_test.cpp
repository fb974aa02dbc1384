// Products with weights of few bits on a GPU against the CPU. Skipped where there is no GPU.
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "runtime/gpu/executor.h"
#include "support/weight_code_graphs.h"

namespace redfuser {
namespace {

class CudaWeightCodes : public testing::TestWithParam<WeightCodeGraph> {};

TEST_P(CudaWeightCodes, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), cpu(program);
  for (const int64_t m : {1, 3, 8, 9, 16, 17, 40}) {
    RandomOptions random;
    random.symbols["m"] = m;
    const NamedTensors inputs = random_inputs(model, random);
    const NamedTensors got = gpu.run(inputs), expected = cpu.run(inputs);
    Tolerance tolerance;
    const DType dtype = expected.at("y").dtype();
    tolerance.relative = dtype == DType::Float32 ? 1e-5 : dtype == DType::Float16 ? 1e-3 : 8e-3;
    tolerance.absolute = tolerance.relative;
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << m << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaWeightCodes, testing::ValuesIn(weight_code_graphs()),
                         name_of_codes);

}  // namespace
}  // namespace redfuser
