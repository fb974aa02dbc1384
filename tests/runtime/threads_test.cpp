// Eight threads run one program, each in a session of its own. tools/sanitize.sh thread runs this
// under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "redfuser/compare.h"
#include "redfuser/io.h"
#include "redfuser/redfuser.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

constexpr int kThreads = 8, kRuns = 2;

// Runs the model in every thread, two workers each, and compares bit by bit with one run alone.
// While they run, one of them compiles the model again: programs share their expressions.
void run_in_threads(const Model& model, const NamedTensors& inputs) {
  const Program program = compile(model);
  const NamedTensors expected = Session(program, {.threads = 2}).run(inputs);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      if (number == 0) compile(model, {.fuse = false, .certify = false});
      Session session(program, {.threads = 2});
      for (int run = 0; run < kRuns; ++run) {
        const NamedTensors outputs = session.run(inputs);
        bool same = outputs.size() == expected.size();
        for (const auto& [name, tensor] : expected) {
          same = same && compare(name, outputs.at(name), tensor, {0, 0}).passed;
        }
        if (same) ++equal;
      }
      program.explain();
      program.dump("plan");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, kThreads * kRuns);
}

class Threads : public testing::TestWithParam<std::string> {};

TEST_P(Threads, ShareOneProgram) {
  const std::string folder = std::string(test_paths::models()) + "/" + GetParam();
  const Model model = Model::load(folder + "/model.onnx");
  run_in_threads(model, load_tensors(folder + "/inputs.npz", model, Role::Inputs));
}

INSTANTIATE_TEST_SUITE_P(All, Threads,
                         testing::Values("bert.dynamo.sdpa", "gpt2.dynamo.eager",
                                         "swin.dynamo.eager", "resnet.dynamo.eager"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

constexpr const char* kHead = "<ir_version: 9, opset_import: [\"\" : 20]> g ";

// The planned loop is unrolled; the condition and the trip count of the other come from a run.
TEST(ThreadsWithControlFlow, ShareOneProgram) {
  Tensor x(DType::Float32, {64, 64}), go(DType::Bool, {}), trips(DType::Int64, {});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i % 17) / 16;
  *go.as<bool>() = true;
  *trips.as<int64_t>() = 5;
  const std::string body =
      "<body = b (int64 i, bool c, float[64, 64] s) => (bool d, float[64, 64] t) "
      "{ d = Identity(c) m = MatMul(s, x) t = Softmax<axis = -1>(m) }>";
  run_in_threads(
      Model::parse(std::string(kHead) +
                   "(float[64, 64] x) => (float[64, 64] y) { n = Constant<value = int64 {4}>() "
                   "y = Loop " +
                   body + " (n, \"\", x) }"),
      {{"x", x}});
  run_in_threads(
      Model::parse(std::string(kHead) +
                   "(float[64, 64] x, bool go, int64 n) => (float[64, 64] y, string[k] t) { "
                   "l = Loop " +
                   body +
                   " (n, \"\", x) "
                   "y = If(go) <then_branch = a () => (float[64, 64] p) { p = Neg(l) }, "
                   "else_branch = e () => (float[64, 64] q) { q = Abs(l) }> "
                   "w = Shape(y) t = Cast<to = 8>(w) }"),
      {{"x", x}, {"go", go}, {"n", trips}});
}

}  // namespace
}  // namespace redfuser
