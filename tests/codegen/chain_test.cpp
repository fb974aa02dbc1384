// Two products as one kernel: which are taken, every choice compiled, and open rows.
#include "codegen/chain/chain_config.h"
#include "codegen/joined/joined_steps.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  bool joined, taken;  // on sm_90
};

std::string chain(const std::string& rows, const std::string& sizes_of_w,
                  const std::string& sizes_of_d, const std::string& width,
                  const std::string& body = "p = MatMul(x, w) h = Relu(p) y = MatMul(h, d)",
                  const std::string& type = "float16", const std::string& more = "") {
  const std::string depth = sizes_of_w.substr(0, sizes_of_w.find(','));
  return fmt::format(
      "g ({0}[{1},{2}] x, {0}[{3}] w, {0}[{3}] u, {0}[{4}] d, {0}[512] b) => "
      "({0}[{1},{5}] y{6}) {{ {7} }}",
      type, rows, depth, sizes_of_w, sizes_of_d, width, more, body);
}

std::vector<Case> cases() {
  const std::string gate =
      "p = MatMul(x, w) q = MatMul(x, u) s = Sigmoid(p) t = Mul(p, s) h = Mul(t, q) "
      "y = MatMul(h, d)";
  const std::string bias =
      "p = MatMul(x, w) a = Add(p, b) h = Relu(a) o = MatMul(h, d) y = Tanh(o)";
  const std::string turned =
      "v = Transpose<perm = [1, 0]>(d) p = MatMul(x, w) h = Relu(p) y = MatMul(h, v)";
  const std::string shown = "p = MatMul(x, w) h = Relu(p) y = MatMul(h, d)";
  const std::string twice = "p = MatMul(x, w) h = Relu(p) o = MatMul(h, d) y = Add(o, h)";
  return {
      {"map", chain("128", "32,512", "512,256", "256"), true, true},
      {"one_row", chain("1", "32,512", "512,256", "256"), true, true},
      {"gate", chain("64", "64,512", "512,256", "256", gate, "bfloat16"), true, true},
      {"bias_and_map", chain("100", "416,512", "512,264", "264", bias), true, true},
      {"second_by_rows", chain("32", "64,512", "256,512", "256", turned), true, true},
      {"same_sizes", chain("16", "256,512", "512,256", "256"), true, true},
      {"large", chain("128", "4096,16384", "16384,4096", "4096"), false, false},
      {"many_rows", chain("4096", "64,512", "512,256", "256"), false, false},
      {"floats", chain("128", "32,512", "512,256", "256", shown, "float"), false, false},
      {"unaligned", chain("128", "32,512", "512,257", "257"), false, false},
      {"shown", chain("128", "32,512", "512,256", "256", shown, "float16", ", float16[128,512] h"),
       false, false},
      {"read_twice", chain("128", "32,512", "512,512", "512", twice), false, false},
  };
}

struct Joined {
  bool joined = false;
  std::vector<codegen::KernelLaunch> taken, offered;  // of the family
};

void add_own(const codegen::GpuStep& step, std::vector<codegen::KernelLaunch>& launches) {
  for (const codegen::GpuCall& call : step.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch != nullptr && launch->family == codegen::kChainFamily) launches.push_back(*launch);
  }
}

Joined joined(const Program& program, const codegen::Target& target) {
  const fuse::Plan& plan = program.handle()->plan;
  const ir::Graph graph = clone(*plan.graph);
  const codegen::JoinedSteps steps(graph, plan, target, {});
  const std::vector<int64_t> symbols(1024, 1);
  Joined result;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (steps.group_of(i) == nullptr) continue;
    result.joined = true;
    add_own(steps.generate(graph, plan, i, target), result.taken);
    for (const auto& each : steps.kernel_configs(graph, plan, i, target, symbols)) {
      const size_t before = result.offered.size();
      add_own(steps.generate(graph, plan, i, target, each.choice), result.offered);
      EXPECT_EQ(result.offered.size() > before, each.choice.family == codegen::kChainFamily);
    }
  }
  return result;
}

Program compiled(const std::string& graph) {
  return compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph));
}

class CodegenChains : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenChains, AreOneKernelWhereItIsFaster) {
  const Program program = compiled(GetParam().graph);
  for (const codegen::Target& target : kTargets) {
    const bool hopper = target.architecture == 90;
    const Joined found = joined(program, target);
    EXPECT_EQ(found.joined, hopper && GetParam().joined) << target.architecture;
    EXPECT_EQ(!found.taken.empty(), hopper && GetParam().taken) << target.architecture;
    if (!hopper || !found.joined) continue;
    EXPECT_GE(found.offered.size(), 2u);
    for (const codegen::KernelLaunch& launch : found.offered) {
      EXPECT_LE(launch.shared + launch.static_shared, target.shared_bytes);
    }
    if (Compiler::find()) expect_compiles(found.offered, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenChains, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Each number of rows has one kernel of the chain, or the steps apart.
TEST(CodegenChains, OpenRowsAreServedByTheirNumber) {
  const Program program = compiled(chain("rows", "512,256", "256,64", "64"));
  const fuse::Plan& plan = program.handle()->plan;
  const ir::Graph graph = clone(*plan.graph);
  const codegen::Target& target = kTargets[1];
  const codegen::JoinedSteps steps(graph, plan, target, {});
  for (const int64_t rows : {0, 1, 16, 17, 128, 129, 4096}) {
    const std::vector<int64_t> symbols(1024, rows);
    int own = 0, apart = 0;
    for (const codegen::GpuCall& call :
         steps.generate(graph, plan, plan.steps.size() - 1, target).calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      int64_t size = 1;
      if (launch == nullptr) size = evaluate_size(std::get<codegen::ProductCall>(call).m, symbols);
      for (int i = 0; launch != nullptr && i < 3; ++i) {
        size *= evaluate_size(launch->grid[i], symbols);
      }
      const bool chain = launch != nullptr && launch->family == codegen::kChainFamily;
      if (size > 0) (chain ? own : apart) += 1;
    }
    EXPECT_EQ(own, rows >= 1 && rows <= 128) << rows;
    EXPECT_EQ(apart > 0, rows > 128) << rows;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
