// Recurrent layers from ONNX text to kernels that NVRTC accepts without spills, and what is
// refused.
#include "support/codegen_harness.h"
#include "support/recurrent_graphs.h"

namespace redfuser::codegen_tests {
namespace {

using testing::recurrent_model;
using testing::RecurrentCase;

const RecurrentCase kCases[] = {
    {"lstm", "LSTM", 512, "float16", "bidirectional", "", "b", "500", "16", 512},
    {"lstm_of_all_inputs", "LSTM", 100, "float", "bidirectional", ", clip = 0.5", "blhcp"},
    {"lstm_of_any_batch", "LSTM", 128, "bfloat16", "reverse", ", layout = 1, input_forget = 1",
     "bl", "t", "n"},
    {"lstm_of_floats", "LSTM", 512, "float", "forward", "", "b", "50", "16"},
    {"lstm_streamed", "LSTM", 1024, "float16", "bidirectional", "", "bc", "50", "64"},
    {"gru_streamed", "GRU", 2048, "float16", "forward", "", "b", "9", "16"},
    {"gru", "GRU", 256, "float16", "bidirectional", "", "bh", "t", "16"},
    {"gru_linear", "GRU", 200, "float16", "forward", ", linear_before_reset = 1", "bhl"},
    {"gru_of_floats", "GRU", 512, "float", "bidirectional",
     ", activations = [\"HardSigmoid\", \"Elu\", \"Softplus\", \"ScaledTanh\"], "
     "activation_alpha = [0.3, 0.5, 1.1], activation_beta = [0.4, 0.9]",
     "b", "9", "33"},
    {"rnn", "RNN", 16, "float16", "forward", ", activations = [\"LeakyRelu\"]", "b"},
    {"rnn_odd", "RNN", 45, "float", "reverse", ", activations = [\"Softsign\"]", "h"},
};

class CodegenRecurrent
    : public ::testing::TestWithParam<std::tuple<RecurrentCase, codegen::Target>> {};

TEST_P(CodegenRecurrent, CompilesWithoutSpills) {
  const auto& [c, target] = GetParam();
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  const GeneratedModel generated = generate_model(Model::parse(recurrent_model(c)), target);
  std::vector<codegen::KernelLaunch> kernels;
  for (const codegen::KernelLaunch& kernel : generated.kernels) {
    if (kernel.family.find("recurrent") == 0) kernels.push_back(kernel);
  }
  ASSERT_FALSE(kernels.empty());
  expect_compiles(kernels, target.architecture, 0);
}

// The kernel of each choice for a run, on the GPU of the largest clusters; two of them are
// compiled.
TEST_P(CodegenRecurrent, EveryChoiceIsAKernelOfItsOwn) {
  const auto& [c, target] = GetParam();
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  if (target.architecture != 90) return;
  const Program program = compile(Model::parse(recurrent_model(c)));
  const runtime::CompiledProgram& compiled = *program.handle();
  const fuse::Step& step = compiled.plan.steps.front();
  const std::vector<int64_t> symbols(compiled.symbol_names.size() + 1024, 24);
  const auto choices = kernel_configs(compiled.graph(), step, target, symbols);
  ASSERT_GE(choices.size(), 2u);
  std::set<std::string> texts;
  for (const codegen::Candidate& candidate : choices) {
    const codegen::GpuStep form = generate(compiled.graph(), step, target, candidate.choice);
    const auto& launch = std::get<codegen::KernelLaunch>(form.calls.back());
    EXPECT_TRUE(texts.insert(launch.source).second) << to_string(candidate.choice);
    EXPECT_LE(launch.shared, target.shared_bytes) << to_string(candidate.choice);
    if (texts.size() <= 2) expect_compiles({launch}, target.architecture, 0);
  }
  const codegen::GpuStep chosen = generate(compiled.graph(), step, target);
  std::string running;
  for (const codegen::GpuCall& call : chosen.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch != nullptr && evaluate_size(launch->grid[0], symbols) > 0) running = launch->source;
  }
  const codegen::GpuStep first = generate(compiled.graph(), step, target, choices.front().choice);
  EXPECT_EQ(std::get<codegen::KernelLaunch>(first.calls.back()).source, running);
}

TEST(CodegenRecurrentRefusals, NameTheReason) {
  const std::pair<RecurrentCase, const char*> cases[] = {
      {{"doubles", "LSTM", 8, "double"}, "float64"},
      {{"no_room", "LSTM", 2048, "float16", "forward", "", "", "7", "n"}, "no room"},
  };
  for (const auto& [c, reason] : cases) {
    try {
      generate_model(Model::parse(recurrent_model(c)), kTargets[0]);
      ADD_FAILURE() << c.name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CodegenRecurrent,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::ValuesIn(kTargets)),
                         [](const auto& info) {
                           return fmt::format(
                               "{}_{}", std::get<0>(info.param).name,
                               cuda::architecture_name(std::get<1>(info.param).architecture));
                         });

}  // namespace
}  // namespace redfuser::codegen_tests
