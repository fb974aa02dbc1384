// Compares convolutions on a GPU with the CPU and with double precision. Skipped without a GPU.
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/convolution_draws.h"
#include "support/float_reference.h"

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
  const std::string& text = GetParam().text;
  tolerance.relative = tolerance.absolute = text.find("bfloat16") != std::string::npos  ? 3e-2
                                            : text.find("float16") != std::string::npos ? 4e-3
                                                                                        : 1e-5;
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

INSTANTIATE_TEST_SUITE_P(Windows, CudaConvolution, testing::ValuesIn(window_graphs()),
                         name_of_convolution);

class CudaConvolutionDraws : public testing::TestWithParam<unsigned> {};

// fp32 operands that are rounded to TF32 are off by about 3e-4.
TEST_P(CudaConvolutionDraws, AgreeWithDoublePrecision) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const DrawnConvolution drawn(GetParam());
  const double allowed = drawn.type == "float" ? 1e-6 : drawn.type == "float16" ? 2e-3 : 2e-2;
  for (const std::string images : {"1", "6", "n"}) {
    const Model model = Model::parse(drawn.graph(images));
    const Program program = compile(model);
    RandomOptions random{.seed = GetParam()};
    if (images == "n") random.symbols["n"] = 3;
    const NamedTensors inputs = random_inputs(model, random);
    const auto result = [&](const char* device, bool rounded) {
      SessionOptions options;
      options.device = device;
      options.tf32 = rounded;
      return Session(program, options).run(inputs).at("y");
    };
    const Tensor expected = result("reference", false);
    EXPECT_LE(distance(result("cuda", false), expected), allowed) << drawn.graph(images);
    if (drawn.type == "float") {
      EXPECT_LE(distance(result("cuda", true), expected), 1e-3) << drawn.graph(images);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaConvolutionDraws, testing::Range(0u, 48u));

}  // namespace
}  // namespace redfuser
