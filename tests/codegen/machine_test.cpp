// Estimates follow the machine that they are for.
#include "codegen/select/generate.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

// b8 h12 l4096 d64, whose work is in the tensor cores.
const char* const kAttention =
    "g (float16[8, 12, 4096, 64] q, float16[8, 12, 4096, 64] k, float16[8, 12, 4096, 64] v) => (y) "
    "{ t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax<axis = -1>(s) "
    "y = MatMul(p, v) }";
// Two products and an epilogue that the library leaves to a map.
const char* const kGated =
    "g (float16[1024, 2048] x, float16[2048, 8192] w, float16[2048, 8192] u) => (y) { "
    "a = MatMul(x, w) b = MatMul(x, u) c = Sigmoid(a) d = Mul(a, c) y = Mul(d, b) }";

// Of the offer that is taken, without the launch.
double time_of(const char* graph, const codegen::Target& target, const std::string& kernel) {
  CompileOptions options;
  options.certify = false;
  const std::string head = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  const Program program = compile(Model::parse(head + graph), options);
  const fuse::Plan& plan = program.handle()->plan;
  EXPECT_EQ(plan.steps.size(), 1u);
  const codegen::GpuStep form = generate(*plan.graph, plan.steps.at(0), target);
  EXPECT_EQ(std::get<codegen::KernelLaunch>(form.calls.at(0)).family, kernel);
  return form.offers.at(0).time - select::kLaunchTime;
}

struct Case {
  const char *graph, *kernel;
  int architecture;
};

TEST(CodegenMachine, AtHalfTheClockWhatIsComputedTakesTwice) {
  for (const Case& c : {Case{kAttention, "attention_hopper", 90}, Case{kAttention, "attention", 80},
                        Case{kGated, "product_tile", 90}}) {
    codegen::Target target{select::machine_like(c.architecture)};
    const double fast = time_of(c.graph, target, c.kernel);
    target.clock /= 2;
    EXPECT_NEAR(time_of(c.graph, target, c.kernel) / fast, 2, 0.05) << c.kernel;
  }
}

// No estimate takes a multiprocessor for faster than its data sheet does.
TEST(CodegenMachine, NoMatrixRateIsAboveThePeak) {
  for (const select::NamedMachine& known : select::known_machines()) {
    const select::Machine& machine = known.machine;
    const double peak = machine.tensor_rate(DType::Float16) / select::kTensorEfficiency;
    EXPECT_LT(machine.warp_tensor_rate(), peak) << known.name;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
