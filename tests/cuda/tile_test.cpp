// Products with an epilogue in one kernel, against fp32 evaluations of the graph. Skipped where
// there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codegen/core/gpu_step.h"
#include "codegen/select/generate.h"
#include "ir/evaluate.h"
#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "runtime/program/compiled_program.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

struct Case {
  const char* what;
  const char* type;                // of all tensors
  const char* graph;               // T is the type
  std::vector<int64_t> rows = {};  // values of r, if there is one
};

// Large enough for the kernel by estimate; rows and columns that do not fill tiles.
const Case kCases[] = {
    {"bias_gelu", "float16",
     "g (T[2040, 320] x, T[320, 1544] w, T[1544] c) => (y)"
     " { p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }"},
    {"any_rows",
     "float16",
     "g (T[2, r, 320] x, T[320, 1544] w, T[1544] c) => (y)"
     " { p = MatMul(x, w) q = Add(p, c) y = Gelu(q) }",
     {0, 1, 130, 1020, 2000}},
    {"halves_of_any_rows",
     "float16",
     "g (T[2, r, 320] x, T[320, 3088] w) => (y) { e = MatMul(x, w)"
     " p, q = Split<axis = -1, num_outputs = 2>(e) t = Tanh(p) y = Mul(t, q) }",
     {0, 1, 130, 1020}},
    {"ragged_by_rows", "bfloat16",
     "g (T[2, 1000, 256] x, T[1999, 256] w, T[2, 1000, 1999] r) => (y)"
     " { v = Transpose<perm = [1, 0]>(w) p = MatMul(x, v) t = Tanh(p) y = Add(t, r) }"},
    {"halves", "float16",
     "g (T[2000, 512] x, T[512, 2032] w) => (y) { r = MatMul(x, w)"
     " p, q = Split<axis = -1, num_outputs = 2>(r) t = Sigmoid(p) u = Mul(p, t) y = Mul(u, q) }"},
    {"two_by_rows", "bfloat16",
     "g (T[2, 1000, 256] x, T[1999, 256] w, T[1999, 256] v, T[1999] c) => (y)"
     " { o = Transpose<perm = [1, 0]>(w) p = MatMul(x, o) u = Transpose<perm = [1, 0]>(v)"
     " q = MatMul(x, u) b = Add(q, c) t = Tanh(p) y = Mul(t, b) }"},
    {"four_quarters", "float16",
     "g (T[2040, 512] x, T[512, 2016] w) => (y) { r = MatMul(x, w)"
     " p, q, s, t = Split<axis = -1, num_outputs = 4>(r) a = Sigmoid(p) b = Tanh(q)"
     " c = Mul(a, b) d = Sigmoid(s) e = Mul(d, t) y = Add(c, e) }"},
};

// Whether the kernel computes the graph on an H100, whose sizes these are.
bool has_tile(const Program& program, const std::vector<int64_t>& symbols) {
  const runtime::CompiledProgram& compiled = *program.handle();
  const codegen::Target target;
  const codegen::GpuStep step =
      generate(clone(compiled.graph()), compiled.plan.steps.at(0), target);
  return std::any_of(step.calls.begin(), step.calls.end(), [&](const codegen::GpuCall& call) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    return launch && launch->family == "product_tile" &&
           evaluate_size(launch->grid[0], symbols) > 0;
  });
}

class CudaTile : public testing::TestWithParam<Case> {};

TEST_P(CudaTile, AgreesWithFloats) {
  const Case& c = GetParam();
  const Model model = model_of_type(c.graph, c.type);
  const Program program = compile(model);
  ASSERT_EQ(program.steps().size(), 1u);
  EXPECT_TRUE(has_tile(program, {c.rows.empty() ? 0 : c.rows.back()}));
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), exact(compile(model_of_type(c.graph, "float")));
  for (size_t run = 0; run < std::max<size_t>(c.rows.size(), 1); ++run) {
    const int64_t rows = c.rows.empty() ? 0 : c.rows[run];
    RandomOptions random;
    if (!c.rows.empty()) random.symbols["r"] = rows;
    NamedTensors inputs = random_inputs(model, random), floats;
    for (auto& [name, tensor] : inputs) {
      floats[name] = as_floats(tensor);
      // Products of about one.
      float* x = floats[name].as<float>();
      for (int64_t i = 0; i < tensor.size() && name == "x"; ++i) x[i] *= 0x1p-4F;
      tensor = cast_floats(floats[name], tensor.dtype());
    }
    const Tensor got = gpu.run(inputs).at("y");
    EXPECT_LE(distance(got, exact.run(floats).at("y")), c.type[0] == 'f' ? 1e-3 : 8e-3) << rows;
    const Tensor again = gpu.run(inputs).at("y");
    EXPECT_EQ(std::memcmp(got.data(), again.data(), got.bytes()), 0)
        << rows << ": not the same bits twice";
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaTile, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace redfuser
