// Convolutions on a GPU against the CPU. Skipped where there is no GPU.
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/executor.h"
#include "support/convolution_graphs.h"

namespace redfuser {
namespace {

class CudaConvolution : public testing::TestWithParam<ConvolutionGraph> {};

TEST_P(CudaConvolution, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), cpu(program);
  Tolerance tolerance;
  // Units in the last place of a result near 1, and of a sum of terms near 1.
  tolerance.relative = tolerance.absolute =
      GetParam().text.find("bfloat16") == std::string::npos ? 4e-3 : 3e-2;
  for (const int64_t n : {1, 5, 33}) {
    const std::map<std::string, int64_t> sizes = {{"n", n}, {"h", n + 8}, {"w", 19}, {"t", 77}};
    RandomOptions random;
    const std::string shape = GetParam().text.substr(0, GetParam().text.find(" x)"));
    for (const auto& [symbol, size] : sizes) {
      for (const char* end : {",", "]"}) {
        if (shape.find(" " + symbol + end) != std::string::npos ||
            shape.find("[" + symbol + end) != std::string::npos) {
          random.symbols[symbol] = size;
        }
      }
    }
    const NamedTensors inputs = random_inputs(model, random);
    const NamedTensors got = gpu.run(inputs), expected = cpu.run(inputs);
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << n << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaConvolution, testing::ValuesIn(convolution_graphs()),
                         name_of_convolution);

}  // namespace
}  // namespace redfuser
