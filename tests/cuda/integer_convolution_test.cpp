// Convolutions of 8-bit integers on a GPU against the CPU: the same integers. Skipped where there
// is no GPU.
#include "runtime/gpu/make_cuda_executor.h"
#include "support/integer_convolutions.h"

namespace redfuser {
namespace {

class CudaIntegerConvolution : public testing::TestWithParam<IntegerProductGraph> {};

TEST_P(CudaIntegerConvolution, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  expect_integers_of_the_cpu(Model::parse(GetParam().text), {1, 2, 17});
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaIntegerConvolution,
                         testing::ValuesIn(integer_convolution_graphs()), name_of_integers);

}  // namespace
}  // namespace redfuser
