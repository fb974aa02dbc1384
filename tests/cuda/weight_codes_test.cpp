// Products with weights of few bits on a GPU against the CPU. Skipped where there is no GPU.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/graph_builder.h"
#include "support/weight_code_graphs.h"

namespace redfuser {
namespace {

double largest(const Tensor& tensor) {
  const std::vector<double> values = testing::values_of(tensor);
  return std::abs(*std::max_element(values.begin(), values.end(),
                                    [](double a, double b) { return std::abs(a) < std::abs(b); }));
}

class CudaWeightCodes : public ::testing::TestWithParam<WeightCodeGraph> {};

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
    // A bias is added to a rounded product, or before it is rounded.
    tolerance.absolute = tolerance.relative * largest(expected.at("y"));
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << m << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaWeightCodes, ::testing::ValuesIn(weight_code_graphs()),
                         name_of_codes);

}  // namespace
}  // namespace redfuser
