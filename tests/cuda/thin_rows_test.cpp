// Norms into products of few rows on a GPU, against the CPU and double precision; skipped where
// there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/drawn_tensor.h"
#include "support/kernel_families.h"

namespace redfuser {
namespace {

using testing::drawn_tensor;
using testing::has_family;

// A graph drawn from its seed: an RMSNorm or a LayerNorm of an input, or of the sum of two, then
// one product or a gate of two, with or without a bias.
struct Drawn {
  const char* type;
  DType dtype;
  bool centred, residual, gated, bias, by_rows;
  int64_t depth, columns;

  explicit Drawn(unsigned seed) {
    std::mt19937 random(seed);
    const auto flip = [&] { return random() % 2 == 0; };
    constexpr std::pair<const char*, DType> kTypes[] = {
        {"float16", DType::Float16}, {"bfloat16", DType::BFloat16}, {"float", DType::Float32}};
    std::tie(type, dtype) = kTypes[random() % 3];
    centred = flip(), residual = flip(), gated = flip(), bias = flip(), by_rows = flip();
    constexpr int64_t kDepths[] = {64, 96, 333, 1000, 1024, 2048, 2049, 4096, 5000};
    constexpr int64_t kColumns[] = {33, 64, 200, 1024, 1031};
    depth = kDepths[random() % std::size(kDepths)];
    columns = kColumns[random() % std::size(kColumns)];
  }

  // Of `rows`, a number or a symbol.
  std::string graph(const std::string& rows) const {
    const std::string x = fmt::format("{}[{},{}]", type, rows, depth),
                      w = by_rows ? fmt::format("{}[{},{}]", type, columns, depth)
                                  : fmt::format("{}[{},{}]", type, depth, columns),
                      y = fmt::format("{}[{},{}]", type, rows, columns);
    std::string body = "last = Constant<value = int64[1] {-1}>() ";
    body += "e = Constant<value = float {1e-5}>() ";
    body += residual ? "t = Add(x, r) " : "t = Identity(x) ";
    body += "f = Cast<to = 1>(t) ";
    body += centred ? "u = ReduceMean(f, last) c = Sub(f, u) " : "c = Identity(f) ";
    body += "q = Mul(c, c) v = ReduceMean(q, last) a = Add(v, e) s = Sqrt(a) n = Div(c, s) ";
    body += fmt::format("h = Cast<to = {}>(n) m = Mul(h, g) ", static_cast<int>(onnx_type()));
    body += by_rows ? "wt = Transpose(w) kt = Transpose(k) " : "wt = Identity(w) kt = Identity(k) ";
    body += "p = MatMul(m, wt) ";
    body += gated ? "o = MatMul(m, kt) i = Sigmoid(p) z = Mul(i, o) " : "z = Identity(p) ";
    body += bias ? "y = Add(z, b)" : "y = Identity(z)";
    return fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0} x, {0} r, {1}[{2}] g, {3} w, {3} k, "
        "{1}[{4}] b) => ({5} y{6}) {{ {7} }}",
        x, type, depth, w, columns, y, residual ? ", " + x + " t" : "", body);
  }

  int onnx_type() const { return dtype == DType::Float16 ? 10 : dtype == DType::BFloat16 ? 16 : 1; }

  NamedTensors inputs(int64_t rows, unsigned seed) const {
    std::mt19937 random(seed);
    const auto tensor = [&](Dims dims, double scale) {
      return drawn_tensor(random, dtype, std::move(dims), scale);
    };
    const double scale = 2 / std::sqrt(static_cast<double>(depth));
    const Dims w = by_rows ? Dims{columns, depth} : Dims{depth, columns};
    return {{"x", tensor({rows, depth}, 3)}, {"r", tensor({rows, depth}, 3)},
            {"g", tensor({depth}, 1)},       {"w", tensor(w, scale)},
            {"k", tensor(w, scale)},         {"b", tensor({columns}, 1)}};
  }
};

class CudaThinRows : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

TEST_P(CudaThinRows, AgreeWithDoublePrecision) {
  const Drawn drawn(GetParam());
  SessionOptions on_gpu, exact;
  on_gpu.device = "cuda";
  exact.device = "reference";
  const Program open = compile(Model::parse(drawn.graph("rows")));
  Session open_gpu(open, on_gpu), cpu(open);
  Session reference(open, exact);
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 15, 16, 17}) {
    const std::string text = fmt::format("{} of {} rows", drawn.graph("rows"), rows);
    const NamedTensors inputs = drawn.inputs(rows, GetParam() + 1);
    const Program known = compile(Model::parse(drawn.graph(std::to_string(rows))));
    Session known_gpu(known, on_gpu);
    const NamedTensors expected = cpu.run(inputs), doubled = reference.run(inputs);
    // Two roundings of the operand, then of the sums. Those of fp32 are as small as the roundings
    // of a sum's terms, which grow as a random walk.
    const double sums = 0x1p-26 * std::sqrt(static_cast<double>(drawn.depth));
    const double unit = drawn.dtype == DType::Float32   ? std::max(0x1p-23, sums)
                        : drawn.dtype == DType::Float16 ? 0x1p-10
                                                        : 0x1p-7;
    const Tolerance tolerance{4 * unit, 8 * unit};
    for (Session* gpu : {&known_gpu, &open_gpu}) {
      const NamedTensors got = gpu->run(inputs);
      for (const NamedTensors* other : {&expected, &doubled}) {
        for (const Comparison& comparison : compare(got, *other, tolerance)) {
          EXPECT_TRUE(comparison.passed) << text << ": " << describe(comparison);
        }
      }
      // A second run, as a recorded graph, gives the same bits.
      for (const Comparison& comparison : compare(gpu->run(inputs), got, {0, 0})) {
        EXPECT_TRUE(comparison.passed) << text << ": " << describe(comparison);
      }
    }
    if (rows == 1 && drawn.depth >= 1000 && drawn.columns >= 1024) {
      EXPECT_TRUE(has_family(known_gpu, "product_thin_rows")) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaThinRows, ::testing::Range(0u, 24u));

}  // namespace
}  // namespace redfuser
