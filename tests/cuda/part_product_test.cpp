// Products of floats by TF32 tensor cores on a GPU, against double precision. Without a GPU they
// are skipped.
#include <gtest/gtest.h>

#include <cmath>

#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

struct Case {
  const char *name, *graph;  // T is the type
};

const Case kCases[] = {
    {"by_rows",
     "g (T[n, 100] x, T[72, 100] w) => (T[n, 72] y) { t = Transpose(w) y = MatMul(x, t) }"},
    {"by_terms", "g (T[n, 100] x, T[100, 72] w) => (T[n, 72] y) { y = MatMul(x, w) }"},
    {"batches", "g (T[3, n, 260] x, T[3, 260, 40] w) => (T[3, n, 40] y) { y = MatMul(x, w) }"},
    {"long", "g (T[n, 5000] x, T[5000, 36] w) => (T[n, 36] y) { y = MatMul(x, w) }"},
    {"rows_by_terms",
     "g (T[2, 96, 132] x, T[2, 96, 200] w) => (T[2, 132, 200] y) {"
     " t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, w) }"},
    {"epilogue",
     "g (T[n, 64] x, T[64, 200] w, T[200] b, T[n, 200] r) => (T[n, 200] y) {"
     " p = MatMul(x, w) s = Add(p, b) t = Sigmoid(s) u = Mul(s, t) y = Add(u, r) }"},
    {"gated",
     "g (T[n, 128] x, T[128, 96] w, T[128, 96] v) => (T[n, 96] y) {"
     " p = MatMul(x, w) q = MatMul(x, v) t = Sigmoid(p) u = Mul(p, t) y = Mul(u, q) }"},
    {"wide", "g (T[n, 160] x, T[160, 1028] w) => (T[n, 1028] y) { p = MatMul(x, w) y = Relu(p) }"},
};

Tensor as_doubles(const Tensor& tensor) { return cast_floats(tensor, DType::Float64); }

class CudaPartProduct : public testing::TestWithParam<Case> {};

// The error of 22 bits of each operand, and of a sum in fp32.
TEST_P(CudaPartProduct, AgreesWithDoublePrecision) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  constexpr double kMost = 1e-6;
  const std::string text = GetParam().graph;
  const Model model = model_of_type(text, "float"), exact = model_of_type(text, "double");
  SessionOptions options;
  options.device = "cuda";
  Session gpu(compile(model), options), cpu(compile(exact));
  for (const int64_t n : {1, 24, 64, 129, 520}) {
    RandomOptions random;
    random.seed = static_cast<uint64_t>(n);
    if (text.find("n, ") != std::string::npos) random.symbols["n"] = n;
    const NamedTensors inputs = random_inputs(model, random);
    NamedTensors doubles;
    for (const auto& [name, tensor] : inputs) doubles[name] = as_doubles(tensor);
    const Tensor got = as_doubles(gpu.run(inputs).at("y")), expected = cpu.run(doubles).at("y");
    EXPECT_LE(distance(got, expected), kMost) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaPartProduct, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
