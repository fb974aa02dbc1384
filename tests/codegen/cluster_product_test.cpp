// Products whose depth the blocks of a cluster divide: where they are taken, and every
// configuration compiled.
#include "codegen/cluster_product/cluster_config.h"
#include "codegen/select/generate.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string rows, operands, body;
  bool taken;        // on sm_90
  int launches = 1;  // with copies of operands that TMA does not read
  std::string type = "float16";
};

std::string graph_of(const Case& c, const std::string& type) {
  const std::string dims = c.rows + ", 768";
  return fmt::format("g ({0}[{1}] x, {0}[{2}] w, {0}[3072] b) => (y) {{ {3} }}", type, dims,
                     c.operands, c.body);
}

const std::string kGelu = "p = MatMul(x, w) s = Add(p, b) t = Sigmoid(s) y = Mul(s, t)";

std::vector<Case> cases() {
  const std::string transposed = "v = Transpose<perm = [1, 0]>(w) p = MatMul(x, v) y = Relu(p)";
  return {
      {"map", "128", "768, 3072", kGelu, true},
      {"odd_rows", "127", "768, 3072", kGelu, true},
      {"rows_of_two_axes", "2, 50", "768, 3072", kGelu, true},
      {"by_rows", "100", "3072, 768", transposed, true},
      {"odd_columns", "128", "768, 3000", "p = MatMul(x, w) y = Relu(p)", true},
      {"copied_columns", "128", "768, 3001", "p = MatMul(x, w) y = Relu(p)", true, 2},
      {"many_rows", "8192", "768, 3072", kGelu, false},
      {"floats", "100", "768, 3072", kGelu, true, 1, "float"},
      {"floats_by_rows", "100", "3072, 768", transposed, true, 1, "float"},
      {"many_rows_of_floats", "8192", "768, 3072", kGelu, true, 1, "float"},
      {"doubles", "100", "768, 3072", kGelu, false, 1, "double"},
  };
}

const codegen::KernelLaunch* own_kernel(const GeneratedModel& model) {
  for (const codegen::KernelLaunch& kernel : model.kernels) {
    if (kernel.family == codegen::kClusterProductFamily) return &kernel;
  }
  return nullptr;
}

class CodegenClusterProducts : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenClusterProducts, AreTaken) {
  const Case& c = GetParam();
  const TextModel file(graph_of(c, c.type));
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model = generate_model(Model::load(file.path()), target);
    const codegen::KernelLaunch* kernel = own_kernel(model);
    ASSERT_EQ(kernel != nullptr, c.taken && target.architecture == 90) << target.architecture;
    if (kernel == nullptr) continue;
    EXPECT_EQ(model.products, 0);
    EXPECT_EQ(model.launches, c.launches);
    EXPECT_EQ(kernel->cluster,
              codegen::KernelConfig({kernel->family, kernel->config}).at("blocks"));
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenClusterProducts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(CodegenClusterProducts, FloatsThatAreToBeExactAreTheLibrarys) {
  codegen::Target target = codegen::target_named("sm_90a");
  target.exact_products = true;
  const TextModel file(graph_of(cases().front(), "float"));
  EXPECT_EQ(own_kernel(generate_model(Model::load(file.path()), target)), nullptr);
}

TEST(CodegenClusterProducts, HaveNoSpills) {
  if (!Compiler::find()) GTEST_SKIP() << "NVRTC is not there";
  for (const Case& c : cases()) {
    if (!c.taken) continue;
    const TextModel file(graph_of(c, c.type == "float16" ? "bfloat16" : c.type));
    CompileOptions options;
    options.certify = false;
    const Program program = compile(Model::load(file.path()), options);
    const ir::Graph graph = clone(program.handle()->graph());
    const fuse::Step& step = program.handle()->plan.steps.front();
    std::vector<codegen::KernelLaunch> kernels;
    for (const codegen::Candidate& candidate :
         codegen::kernel_configs(graph, step, kTargets[1], {}, {})) {
      if (candidate.choice.family != codegen::kClusterProductFamily) continue;
      const codegen::GpuStep made = codegen::generate(graph, step, kTargets[1], candidate.choice);
      for (const codegen::GpuCall& call : made.calls) {
        if (const auto* launch = std::get_if<codegen::KernelLaunch>(&call)) {
          kernels.push_back(*launch);
        }
      }
    }
    EXPECT_FALSE(kernels.empty()) << c.name;
    expect_compiles(kernels, 90);
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
