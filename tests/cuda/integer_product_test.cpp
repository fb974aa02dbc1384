// Products of 8-bit integers on a GPU against the CPU: the same integers. Skipped where there is no
// GPU.
#include "runtime/gpu/make_cuda_executor.h"
#include "support/integer_products.h"

namespace redfuser {
namespace {

class CudaIntegerProduct : public testing::TestWithParam<IntegerProductGraph> {};

TEST_P(CudaIntegerProduct, AgreesWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  expect_integers_of_the_cpu(Model::parse(GetParam().text), {1, 5, 16, 17, 64, 100, 300, 1030});
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaIntegerProduct, testing::ValuesIn(integer_product_graphs()),
                         name_of_integers);

}  // namespace
}  // namespace redfuser
