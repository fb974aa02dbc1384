// Rows into products of few rows: which steps are joined, for which sizes, and that the kernels
// compile on every architecture.
#include "codegen/joined/joined_steps.h"
#include "codegen/product/thin_config.h"
#include "codegen/thin_rows/thin_rows_kernel.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr const char* kNorm =
    "last = Constant<value = int64[1] {-1}>() e = Constant<value = float {1e-6}>() "
    "f = Cast<to = 1>(x) q = Mul(f, f) v = ReduceMean(q, last) a = Add(v, e) s = Sqrt(a) "
    "n = Div(f, s) h = Cast<to = 10>(n) m = Mul(h, g) ";
constexpr const char* kLayerNorm =
    "last = Constant<value = int64[1] {-1}>() e = Constant<value = float {1e-5}>() "
    "t = Add(x, r) u = ReduceMean(t, last) c = Sub(t, u) q = Mul(c, c) v = ReduceMean(q, last) "
    "a = Add(v, e) s = Sqrt(a) n = Div(c, s) m = Mul(n, g) ";

struct Case {
  const char* name;
  std::string graph;
  bool joined;  // the steps have a kernel
};

std::vector<Case> cases() {
  const std::string norm = kNorm, layer = kLayerNorm;
  return {
      {"one_row",
       "g (float16[1,2048] x, float16[2048] g, float16[2048,4096] w) => (float16[1,4096] y) { " +
           norm + "y = MatMul(m, w) }",
       true},
      {"open_rows",
       "g (float16[b,s,2048] x, float16[2048] g, float16[2048,4096] w, float16[2048,4096] k) => "
       "(float16[b,s,4096] y) { " +
           norm + "p = MatMul(m, w) o = MatMul(m, k) i = Sigmoid(p) z = Mul(p, i) y = Mul(z, o) }",
       true},
      // The sum is a result, too.
      {"residual",
       "g (float[3,1000] x, float[3,1000] r, float[1000] g, float[1000,500] w) => "
       "(float[3,500] y, float[3,1000] t) { " +
           layer + "y = MatMul(m, w) }",
       true},
      {"odd_depth",
       "g (float16[5,999] x, float16[999] g, float16[999,1024] w, float16[1024] b) => "
       "(float16[5,1024] y) { " +
           norm + "p = MatMul(m, w) z = Add(p, b) y = Relu(z) }",
       true},
      {"reshaped",
       "g (float16[2,3,512] x, float16[512] g, float16[512,1024] w) => (float16[6,1024] y) { " +
           norm + "d = Constant<value = int64[2] {6, 512}>() z = Reshape(m, d) y = MatMul(z, w) }",
       true},
      {"result_of_the_graph",
       "g (float16[2,512] x, float16[512] g, float16[512,1024] w) => "
       "(float16[2,1024] y, float16[2,512] m) { " +
           norm + "y = MatMul(m, w) }",
       true},
      {"second_reader",
       "g (float16[2,512] x, float16[512] g, float16[512,1024] w, float16[512,128] k) => "
       "(float16[2,1024] y, float16[2,128] z) { " +
           norm + "y = MatMul(m, w) z = MatMul(m, k) }",
       false},
      {"read_by_the_epilogue",
       "g (float16[2,512] x, float16[512] g, float16[512,512] w) => (float16[2,512] y) { " + norm +
           "p = MatMul(m, w) y = Add(p, m) }",
       false},
      {"many_rows",
       "g (float16[64,512] x, float16[512] g, float16[512,1024] w) => (float16[64,1024] y) { " +
           norm + "y = MatMul(m, w) }",
       false},
      {"other_rows",
       "g (float16[4,512] x, float16[512] g, float16[256,1024] w) => (float16[8,1024] y) { " +
           norm + "d = Constant<value = int64[2] {8, 256}>() z = Reshape(m, d) y = MatMul(z, w) }",
       false},
      // The result of a run may lie in the memory of its input.
      {"in_place",
       "g (float16[2,512] x, float16[512] g, float16[512,512] w) => (float16[2,512] y) { " + norm +
           "y = MatMul(m, w) }",
       false},
  };
}

struct Joined {
  bool joined = false;
  std::vector<codegen::KernelLaunch> launches;  // of the family
};

Joined joined(const Program& program, const codegen::Target& target) {
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph graph = clone(compiled.graph());
  const codegen::JoinedSteps steps(graph, compiled.plan, target, {});
  Joined result;
  for (size_t i = 0; i < compiled.plan.steps.size(); ++i) {
    result.joined |= steps.group_of(i) != nullptr;
    if (std::holds_alternative<fuse::AliasStep>(compiled.plan.steps[i].kind)) continue;
    const codegen::GpuStep step = steps.generate(graph, compiled.plan, i, target);
    if (steps.taken_by(i)) {
      EXPECT_TRUE(step.calls.empty());
    }
    for (const codegen::GpuCall& call : step.calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr || launch->family != codegen::kThinRowsFamily) continue;
      result.launches.push_back(*launch);
    }
  }
  return result;
}

class CodegenThinRows : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenThinRows, AreMadeByTheProductsThatReadThem) {
  const Program program =
      compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + GetParam().graph));
  for (const codegen::Target& target : kTargets) {
    const Joined found = joined(program, target);
    EXPECT_EQ(found.joined, GetParam().joined) << target.architecture;
    // Estimates differ between machines.
    if (target.architecture == 90) {
      EXPECT_EQ(!found.launches.empty(), GetParam().joined);
    }
    for (const codegen::KernelLaunch& launch : found.launches) {
      EXPECT_LE(launch.shared + launch.static_shared, target.shared_bytes);
    }
    if (Compiler::find()) expect_compiles(found.launches, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenThinRows, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Each number of rows has one kernel that makes them, or the steps apart; every choice is whole.
TEST(CodegenThinRows, OpenRowsAreServedByTheirNumber) {
  const Program program =
      compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + cases()[1].graph));
  const fuse::Plan& plan = program.handle()->plan;
  const ir::Graph graph = clone(*plan.graph);
  const codegen::Target& target = kTargets[1];
  const codegen::JoinedSteps steps(graph, plan, target, {});
  const size_t last = plan.steps.size() - 1;
  std::vector<codegen::KernelLaunch> tried;
  for (const int64_t rows : {0, 1, 2, 8, 9, 16, 17, 4096}) {
    std::vector<int64_t> symbols(1024, 1);
    symbols[1] = rows;
    const auto counts = [&](const codegen::GpuStep& form) {
      int joined = 0, apart = 0;
      for (const codegen::GpuCall& call : form.calls) {
        const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
        int64_t size = 1;
        if (launch == nullptr) {
          size = evaluate_size(std::get<codegen::ProductCall>(call).m, symbols);
        }
        for (int i = 0; launch != nullptr && i < 3; ++i) {
          size *= evaluate_size(launch->grid[i], symbols);
        }
        const bool own = launch != nullptr && launch->family == codegen::kThinRowsFamily;
        if (size > 0) (own ? joined : apart) += 1;
        if (size > 0 && own) tried.push_back(*launch);
      }
      EXPECT_LE(joined, 1) << rows;
      EXPECT_TRUE(rows == 0 ? joined + apart == 0 : (joined > 0) != (apart > 1)) << rows;
      return joined;
    };
    const int joined = counts(steps.generate(graph, plan, last, target));
    if (rows == 1) {
      EXPECT_EQ(joined, 1);
    }
    if (rows == 0 || rows > 16) {
      EXPECT_EQ(joined, 0);
    }
    if (rows == 0) continue;
    const auto choices = steps.kernel_configs(graph, plan, last, target, symbols);
    ASSERT_FALSE(choices.empty()) << rows;
    EXPECT_EQ(choices[0].choice.family == codegen::kThinRowsFamily, joined > 0) << rows;
    int offered = 0;
    for (const auto& candidate : choices) {
      const int own = counts(steps.generate(graph, plan, last, target, candidate.choice));
      EXPECT_EQ(own > 0, candidate.choice.family == codegen::kThinRowsFamily) << rows;
      offered += own;
    }
    EXPECT_EQ(offered > 0, rows <= 16) << rows;
  }
  if (Compiler::find()) expect_compiles(tried, target.architecture);
}

}  // namespace
}  // namespace redfuser::codegen_tests
