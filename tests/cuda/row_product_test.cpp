// Reductions over the columns of a product on a GPU against the CPU. Sums of small integers are
// exact, so that ranks agree in every index; skipped where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/ranked_rows.h"

namespace redfuser {
namespace {

using testing::set_element;

struct Case {
  const char* name;
  const char* type;
  DType dtype;
  int hidden, columns;
  bool transposed;
  const char* result;  // y's type
  const char* nodes;   // from s to y, and i
};

constexpr const char* kRouting =
    "f = Cast<to = 1>(s) p = Softmax<axis = -1>(f) k = Constant<value = int64[1] {6}>() "
    "y, i = TopK(p, k)";
constexpr const char* kFirst =
    "k = Constant<value = int64[1] {1}>() f = Cast<to = 1>(s) y, i = TopK<largest = 0>(f, k)";
constexpr const char* kMany =
    "k = Constant<value = int64[1] {40}>() f = Cast<to = 1>(s) y, i = TopK(f, k)";
constexpr const char* kProbabilities =
    "f = Cast<to = 1>(s) y = Softmax<axis = -1>(f) i = ArgMax<axis = -1>(s)";

const Case kCases[] = {
    {"routing", "float16", DType::Float16, 2048, 128, false, "float", kRouting},
    {"routing_by_rows", "bfloat16", DType::BFloat16, 768, 160, true, "float", kRouting},
    {"routing_of_256", "float16", DType::Float16, 1000, 256, false, "float", kRouting},
    {"routing_of_8", "bfloat16", DType::BFloat16, 512, 8, true, "float", kRouting},
    {"first_of_72", "float16", DType::Float16, 72, 72, false, "float", kFirst},
    {"forty_of_64", "float16", DType::Float16, 40, 64, true, "float", kMany},
    {"probabilities", "float16", DType::Float16, 136, 200, false, "float", kProbabilities},
};

class CudaRowProduct : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

Tensor small_integers(DType dtype, const Dims& dims, uint64_t seed) {
  Tensor tensor(dtype, dims);
  std::mt19937_64 generator(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    set_element(tensor, i, static_cast<double>(generator() % 3) - 1);
  }
  return tensor;
}

TEST_P(CudaRowProduct, AgreesWithTheCpu) {
  const Case& c = GetParam();
  const Dims dims = c.transposed ? Dims{c.columns, c.hidden} : Dims{c.hidden, c.columns};
  const Model model = Model::parse(fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[m,{1}] x, {0}[{2},{3}] w) => "
      "({4}[m,a] y, int64[m,b] i) {{ {5} s = MatMul(x, {6}) {7} }}",
      c.type, c.hidden, dims[0], dims[1], c.result,
      c.transposed ? "t = Transpose<perm = [1, 0]>(w)" : "", c.transposed ? "t" : "w", c.nodes));
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  const Program program = compile(model);
  Session gpu(program, on_gpu), cpu(program);
  const Tensor w = small_integers(c.dtype, dims, 7);
  for (const int64_t rows : {1, 63, 64, 65, 200, 1000, 3000, 9000}) {
    const NamedTensors inputs = {{"x", small_integers(c.dtype, {rows, c.hidden}, 8)}, {"w", w}};
    const NamedTensors expected = cpu.run(inputs), got = gpu.run(inputs);
    for (const Comparison& comparison : compare(got, expected, {1e-7, 2e-5})) {
      EXPECT_TRUE(comparison.passed) << rows << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaRowProduct, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
