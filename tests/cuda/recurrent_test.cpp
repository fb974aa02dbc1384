// Recurrent layers on a GPU against the CPU; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/recurrent_graphs.h"

namespace redfuser {
namespace {

using testing::recurrent_model;
using testing::RecurrentCase;

constexpr const char* kOther =
    ", activations = [\"HardSigmoid\", \"Elu\", \"Softplus\"], "
    "activation_alpha = [0.3, 0.5], activation_beta = [0.4]";

const RecurrentCase kCases[] = {
    {"lstm_16", "LSTM", 16, "float16", "forward", "", "b"},
    {"lstm_16_floats", "LSTM", 16, "float", "bidirectional", "", "bl"},
    {"lstm_45_all_inputs", "LSTM", 45, "float", "bidirectional", ", clip = 0.5", "blhcp", "11",
     "9"},
    {"lstm_45_batch_first", "LSTM", 45, "float16", "bidirectional", ", layout = 1", "blhcp", "11",
     "9"},
    {"lstm_coupled", "LSTM", 64, "float", "reverse", ", input_forget = 1", "blhc", "5", "17"},
    {"lstm_other", "LSTM", 100, "float", "forward", kOther, "b", "20", "4"},
    {"lstm_512", "LSTM", 512, "float16", "bidirectional", "", "bl", "60", "16", 512},
    {"lstm_512_floats", "LSTM", 512, "float", "bidirectional", "", "b", "40", "16", 64},
    {"lstm_512_batch_64", "LSTM", 512, "float16", "bidirectional", "", "bh", "30", "64", 64},
    {"lstm_512_batch_1", "LSTM", 512, "float", "forward", "", "b", "30", "1", 64},
    {"lstm_1024", "LSTM", 1024, "float16", "bidirectional", "", "b", "20", "32", 64},
    {"lstm_2048", "LSTM", 2048, "float16", "bidirectional", "", "b", "10", "64", 64},
    {"lstm_2048_floats", "LSTM", 2048, "float", "forward", "", "b", "10", "16", 64},
    {"lstm_bfloat", "LSTM", 256, "bfloat16", "bidirectional", "", "bl", "30", "20", 64},
    {"gru_48", "GRU", 48, "float", "bidirectional", "", "blh", "13", "5"},
    {"gru_48_linear", "GRU", 48, "float", "bidirectional", ", linear_before_reset = 1", "blh", "13",
     "5"},
    {"gru_512", "GRU", 512, "float16", "bidirectional", "", "b", "60", "16", 64},
    {"gru_512_linear", "GRU", 512, "float16", "bidirectional", ", linear_before_reset = 1", "b",
     "60", "16", 64},
    {"gru_2048", "GRU", 2048, "float16", "forward", "", "b", "10", "8", 64},
    {"rnn_33", "RNN", 33, "float", "reverse", ", activations = [\"Softsign\"]", "blh", "9", "3"},
    {"rnn_512", "RNN", 512, "float16", "bidirectional", "", "b", "100", "16", 64},
    {"rnn_2048", "RNN", 2048, "float", "bidirectional", "", "b", "10", "32", 64},
};

class CudaRecurrent : public ::testing::TestWithParam<RecurrentCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }

  // Weights keep sums near 1.
  NamedTensors inputs_of(const Model& model) const {
    const RecurrentCase& c = GetParam();
    const double w = 1 / std::sqrt(c.input), r = 1.5 / std::sqrt(c.hidden);
    RandomOptions random;
    random.ranges = {{"w", {-w, w}}, {"r", {-r, r}}};
    if (c.has('l')) random.ranges["l"] = {0, std::stod(c.steps) + 1};
    return random_inputs(model, random);
  }

  // Sums of both devices are in fp32, in another order; h is rounded to 16 bits for the tensor
  // cores at each step.
  static Tolerance tolerance() {
    const std::string type = GetParam().type;
    if (type == "float") return {1e-4, 1e-4};
    return type == "float16" ? Tolerance{5e-3, 5e-3} : Tolerance{4e-2, 4e-2};
  }
};

TEST_P(CudaRecurrent, AgreesWithTheCpu) {
  const Model model = Model::parse(recurrent_model(GetParam()));
  const Program program = compile(model);
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  Session gpu(program, on_gpu), cpu(program);
  for (const std::string& note : gpu.notes()) {
    EXPECT_EQ(note.find("the CPU computes"), std::string::npos) << note;
  }
  const NamedTensors inputs = inputs_of(model);
  const NamedTensors first = gpu.run(inputs);
  for (const Comparison& result : compare(first, cpu.run(inputs), tolerance())) {
    EXPECT_TRUE(result.passed) << describe(result);
  }
  for (const Comparison& result : compare(gpu.run(inputs), first, {0, 0})) {
    EXPECT_TRUE(result.passed) << "a second run differs: " << describe(result);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaRecurrent, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
