// Products of 8-bit floats on a GPU against the CPU. Skipped where there is no GPU.
#include "runtime/gpu/make_cuda_executor.h"
#include "support/code_product_inputs.h"

namespace redfuser {
namespace {

class CudaCodeProduct : public testing::TestWithParam<CodeProductGraph> {};

TEST_P(CudaCodeProduct, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), cpu(program);
  for (const int64_t m : {1, 5, 16, 67, 300}) {
    const NamedTensors inputs = code_product_inputs(model, m);
    expect_near(gpu.run(inputs), cpu.run(inputs));
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaCodeProduct, testing::ValuesIn(code_product_graphs()),
                         name_of_product);

}  // namespace
}  // namespace redfuser
