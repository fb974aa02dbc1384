// Elements by rank on a GPU against the CPU, which must agree in every value and index; skipped
// where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/executor.h"

namespace redfuser {
namespace {

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

// Rows of six kinds: drawn, few values, rising, zeros of both signs, with NaN and infinities, and
// with all large elements 64 places apart.
double drawn(std::mt19937_64& generator, int64_t row, int64_t column, int64_t length) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  switch (row % 6) {
    case 1:
      return std::round(x);
    case 2:
      return static_cast<double>(column) / static_cast<double>(length);
    case 3:
      return column % 3 == 0 ? -0.0 : 0.0;
    case 4:
      if (generator() % 32 == 0) return std::nan("");
      if (generator() % 32 == 0) return generator() % 2 ? HUGE_VAL : -HUGE_VAL;
      return x;
    case 5:
      return column % 64 == 5 ? 100 + x : 0.01 * x;
    default:
      return x;
  }
}

uint16_t half_bits(double x) {
  if (std::isnan(x)) return 0x7e00;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isinf(x)) return sign | 0x7c00;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  if (fraction == 0 || exponent < -13) return sign;
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) |
                               (static_cast<int>(fraction * 2048) & 1023));
}

void set(Tensor& x, int64_t i, double value) {
  const bool whole = !std::isfinite(value);
  const double scaled = whole ? 0 : value * 1000;
  switch (x.dtype()) {
    case DType::Float32:
      x.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::Float64:
      x.as<double>()[i] = value;
      break;
    case DType::Float16:
      x.as<uint16_t>()[i] = half_bits(value);
      break;
    case DType::BFloat16: {
      const auto single = static_cast<float>(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, 4);
      x.as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
      break;
    }
    case DType::Int64:
      x.as<int64_t>()[i] =
          whole ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(scaled * 1e12);
      break;
    case DType::Int32:
      x.as<int32_t>()[i] =
          whole ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(scaled);
      break;
    default:
      x.as<uint8_t>()[i] = static_cast<uint8_t>(static_cast<int64_t>(scaled));
  }
}

class CudaRanking : public testing::TestWithParam<RankingCase> {
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
        set(x, c.columns ? j * rows + row : row * length + j, drawn(generator, row, j, length));
      }
    }
    const NamedTensors inputs = {{"x", x}};
    const NamedTensors expected = cpu.run(inputs), got = gpu.run(inputs);
    for (const Comparison& comparison : compare(got, expected, {0, 0})) {
      EXPECT_TRUE(comparison.passed) << rows << " x " << length << ": " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaRanking, testing::ValuesIn(kCases),
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
    for (int64_t i = 0; i < x.size(); ++i) set(x, i, drawn(generator, 0, i, length));
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
