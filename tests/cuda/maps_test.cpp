// Independent elementwise steps in one launch on a GPU, against the CPU; skipped where there is no
// GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "redfuser/state.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

constexpr const char* kHead = "<ir_version: 9, opset_import: [\"\" : 20]> ";

// A graph drawn from its seed: some inputs of other sizes and types, each with a few elementwise
// results that move, convert, join or select its elements.
class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {
    const int count = 2 + static_cast<int>(draw(5));
    for (int i = 0; i < count; ++i) add(i);
  }

  std::string graph() const {
    return fmt::format("{}g ({}) => ({}) {{ o = Constant<value = int64[1] {{-1}}>() {} }}", kHead,
                       inputs_, outputs_, body_);
  }
  // By symbol.
  // The sizes of the symbols that the graph has.
  std::map<std::string, int64_t> sizes(int64_t m, int64_t n) const {
    std::map<std::string, int64_t> result = {{"m", m}, {"n", n}, {"k", m + 3}};
    std::erase_if(result, [&](const auto& size) {
      return inputs_.find("[" + size.first + ",") == std::string::npos &&
             inputs_.find(", " + size.first + "]") == std::string::npos;
    });
    return result;
  }

 private:
  size_t draw(size_t count) { return random_() % count; }

  void add_output(const std::string& type, const std::string& dims, const std::string& name) {
    outputs_ += fmt::format("{}{}[{}] {}", outputs_.empty() ? "" : ", ", type, dims, name);
  }

  void add(int number) {
    const char* const types[] = {"float16", "float", "bfloat16", "double", "int64", "uint8"};
    const char* const rows[] = {"m", "k", "7", "64"};
    const char* const columns[] = {"n", "48", "5", "m"};
    const std::string type = types[draw(6)], r = rows[draw(4)], c = columns[draw(4)];
    const std::string x = fmt::format("x{}", number), y = fmt::format("y{}", number);
    const bool is_real = type != "int64" && type != "uint8";
    inputs_ += fmt::format("{}{}[{}, {}] {}", number > 0 ? ", " : "", type, r, c, x);
    switch (draw(6)) {
      case 0:  // another order
        body_ += fmt::format("{} = Transpose({}) ", y, x);
        return add_output(type, c + ", " + r, y);
      case 1:  // another type
        body_ += fmt::format("{} = Cast<to = {}>({}) ", y, type == "float" ? 10 : 1, x);
        return add_output(type == "float" ? "float16" : "float", r + ", " + c, y);
      case 2:  // rows behind rows
        body_ +=
            fmt::format("a{0} = Add({1}, {1}) {2} = Concat<axis = 0>({1}, a{0}) ", number, x, y);
        return add_output(type, fmt::format("twice{}, {}", number, c), y);
      case 3:  // selected
        body_ += fmt::format(
            "c{0} = Cast<to = 9>({1}) a{0} = Mul({1}, {1}) "
            "{2} = Where(c{0}, a{0}, {1}) ",
            number, x, y);
        return add_output(type, r + ", " + c, y);
      case 4:  // columns backwards
        body_ += fmt::format(
            "e{0} = Constant<value = int64[1] {{-9223372036854775807}}>() "
            "a{0} = Constant<value = int64[1] {{1}}>() "
            "{2} = Slice({1}, o, e{0}, a{0}, o) ",
            number, x, y);
        return add_output(type, r + ", " + c, y);
      default:  // with other functions
        if (!is_real) {
          body_ += fmt::format("{} = Sub({}, {}) ", y, x, x);
        } else {
          body_ += fmt::format("s{0} = Sigmoid({1}) {2} = Mul(s{0}, {1}) ", number, x, y);
        }
        return add_output(type, r + ", " + c, y);
    }
  }

  std::mt19937 random_;
  std::string inputs_, outputs_, body_;
};

class CudaMaps : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    on_gpu.device = "cuda";
  }

  static void expect_equal(const NamedTensors& got, const NamedTensors& expected,
                           const Tolerance& tolerance, const std::string& text) {
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << text << ": " << describe(comparison);
    }
  }

  SessionOptions on_gpu;
};

bool joins(const Session& session) {
  for (const StepFacts& facts : session.step_facts()) {
    if (facts.family == "maps") return true;
  }
  return false;
}

TEST_P(CudaMaps, AgreeWithTheCpu) {
  const Drawn drawn(GetParam());
  const std::string graph = drawn.graph();
  const Model model = Model::parse(graph);
  const Program program = compile(model);
  Session gpu(program, on_gpu), cpu(program);
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1},
                             {5, 3},
                             {64, 48},
                             {33, 1000},
                             {0, 7},
                             {700, 900},
                             {5, 0}}) {
    const std::string text = fmt::format("{} of {} x {}", graph, m, n);
    const NamedTensors inputs = random_inputs(model, {GetParam(), drawn.sizes(m, n), {}, {}});
    const NamedTensors got = gpu.run(inputs);
    expect_equal(got, cpu.run(inputs), {0x1p-9, 0x1p-7}, text);
    expect_equal(gpu.run(inputs), got, {0, 0}, text);
  }
  EXPECT_TRUE(joins(gpu)) << graph;
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaMaps, ::testing::Range(0u, 32u));

class CudaJoinedDecoder : public CudaMaps {
 protected:
  // The next tokens of one sequence, all of which see each other.
  static NamedTensors tokens(int64_t past, int64_t count) {
    NamedTensors inputs = {{"input_ids", Tensor(DType::Int64, {1, count})},
                           {"position_ids", Tensor(DType::Int64, {1, count})},
                           {"attention_mask", Tensor(DType::Int64, {1, past + count})}};
    for (int64_t i = 0; i < count; ++i) {
      inputs.at("input_ids").as<int64_t>()[i] = (past + i) * 37 % 128;
      inputs.at("position_ids").as<int64_t>()[i] = past + i;
    }
    std::fill_n(inputs.at("attention_mask").as<int64_t>(), past + count, 1);
    return inputs;
  }
};

// Keys and values are appended in place by the kernel that rotates the queries. The parameter is
// whether choices are measured.
TEST_P(CudaJoinedDecoder, HasTheTokensOfTheCpu) {
  const Model model = Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx");
  const Program program = compile(model);
  on_gpu.tune = GetParam() > 0;
  Session gpu(program, on_gpu), cpu(program);
  States on_device(gpu, model), on_host(cpu, model);
  for (int64_t token = 0; token < 40; ++token) {
    const int64_t count = token == 0 ? 5 : 1, past = on_host.length();
    const NamedTensors inputs = tokens(past, count);
    expect_equal(on_device.run(inputs), on_host.run(inputs), {1e-4, 1e-4},
                 fmt::format("token {}", token));
    if (token % 16 != 15) continue;
    on_device.rewind(3);
    on_host.rewind(3);
  }
  EXPECT_TRUE(joins(gpu) || GetParam() > 0);
}

INSTANTIATE_TEST_SUITE_P(Tuned, CudaJoinedDecoder, ::testing::Values(0u, 1u));

}  // namespace
}  // namespace redfuser
