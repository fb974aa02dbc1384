// Elements by rank on a GPU against the CPU, which must agree in every value and index; skipped
// where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/ranked_rows.h"

namespace redfuser {
namespace {

using testing::drawn;
using testing::set_element;

struct RankingCase {
  const char* name;
  const char* type;
  DType dtype;
  int k;
  bool largest = true;
  bool columns = false;  // ranks along the first axis
};

const RankingCase kCases[] = {
    {"first", "float", DType::Float32, 1},
    {"experts", "float", DType::Float32, 8},
    {"least", "float", DType::Float32, 8, false},
    {"columns", "float", DType::Float32, 5, true, true},
    {"samples", "float", DType::Float32, 50},
    {"halves", "float16", DType::Float16, 50, false},
    {"bfloats", "bfloat16", DType::BFloat16, 9},
    {"many", "float", DType::Float32, 300},
    {"most", "float", DType::Float32, 1024, false},
    {"doubles", "double", DType::Float64, 20},
    {"words", "int64", DType::Int64, 20, false},
    {"integers", "int32", DType::Int32, 20},
    {"bytes", "uint8", DType::UInt8, 20},
};

class CudaRanking : public ::testing::TestWithParam<RankingCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

TEST_P(CudaRanking, AgreesWithTheCpu) {
  const RankingCase& c = GetParam();
  const std::string k = std::to_string(c.k);
  const Model model = Model::parse(fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[m,n] x) => ({0}[{1}] y, int64[{1}] i) {{ "
      "k = Constant<value = int64[1] {{{2}}}>() y, i = TopK<axis = {3}, largest = {4}>(x, k) }}",
      c.type, c.columns ? k + ",n" : "m," + k, k, c.columns ? 0 : 1, c.largest ? 1 : 0));
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  const Program program = compile(model);
  Session gpu(program, on_gpu), cpu(program);
  const std::pair<int64_t, int64_t> sizes[] = {{6, 0},     {7, 17},     {9, 1023},
                                               {600, 256}, {12, 1025},  {12, 9001},
                                               {6, 32768}, {6, 100003}, {400, 5000}};
  for (const auto& [rows, more] : sizes) {
    const int64_t length = c.k + more;
    Tensor x(c.dtype, c.columns ? Dims{length, rows} : Dims{rows, length});
    std::mt19937_64 generator(static_cast<uint64_t>(rows + length));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < length; ++j) {
        set_element(x, c.columns ? j * rows + row : row * length + j,
                    drawn(generator, row, j, length));
      }
    }
    const NamedTensors inputs = {{"x", x}};
    const NamedTensors expected = cpu.run(inputs), got = gpu.run(inputs);
    for (const Comparison& comparison : compare(got, expected, {0, 0})) {
      EXPECT_TRUE(comparison.passed) << rows << " x " << length << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaRanking, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Weights of a softmax by rank, as the unfused graph has them.
TEST(CudaRankedWeights, AgreeWithTheUnfusedGraph) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[m,n] x) => (float[m,6] y, int64[m,6] i) "
      "{ k = Constant<value = int64[1] {6}>() p = Softmax<axis = -1>(x) y, i = TopK(p, k) }");
  CompileOptions unfused;
  unfused.fuse = false;
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  Session gpu(compile(model), on_gpu), cpu(compile(model, unfused));
  for (const auto& [rows, length] :
       {std::pair<int64_t, int64_t>{5, 6}, {300, 256}, {7, 5000}, {3, 131073}}) {
    Tensor x(DType::Float32, {rows, length});
    std::mt19937_64 generator(static_cast<uint64_t>(length));
    for (int64_t i = 0; i < x.size(); ++i) set_element(x, i, drawn(generator, 0, i, length));
    const NamedTensors expected = cpu.run({{"x", x}}), got = gpu.run({{"x", x}});
    for (int64_t i = 0; i < rows * 6; ++i) {
      const float want = expected.at("y").as<float>()[i];
      EXPECT_NEAR(got.at("y").as<float>()[i], want, 1e-5f * want) << rows << " x " << length;
      EXPECT_EQ(got.at("i").as<int64_t>()[i], expected.at("i").as<int64_t>()[i]);
    }
  }
}

}  // namespace
}  // namespace redfuser
