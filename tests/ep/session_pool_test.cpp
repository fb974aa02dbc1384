// Threads that run one node of ONNX Runtime at once. tools/sanitize.sh thread runs this under
// ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ep/session_pool.h"

namespace redfuser::ep {
namespace {

constexpr int kThreads = 8, kRuns = 20;

Program softmax() {
  return compile(Model::parse(
      "<ir_version: 10, opset_import: [\"\" : 20]> g (float[n, 8] x) => (float[n, 8] y) {"
      " y = Softmax(x) }"));
}

TEST(SessionPool, GivesEveryThreadASessionOfItsOwn) {
  SessionPool pool(softmax(), {.threads = 2});
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Tensor x(DType::Float32, {number + 1, 8}), y(DType::Float32, {number + 1, 8});
      for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(number);
      for (int run = 0; run < kRuns; ++run) {
        pool.with_session([&](Session& session) { session.run({{"x", x}}, {{"y", y}}); });
        right += y.as<float>()[y.size() - 1] == 0.125f ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kRuns);
}

TEST(SessionPool, KeepsASessionWhoseRunFailed) {
  SessionPool pool(softmax(), {.threads = 1});
  const auto run = [&](Dims dims) {
    const Session* used = nullptr;
    try {
      pool.with_session([&](Session& session) {
        used = &session;
        session.run({{"x", Tensor(DType::Float32, dims)}});
      });
    } catch (const UserError&) {
    }
    return used;
  };
  EXPECT_EQ(run({2, 7}), run({2, 8}));
}

}  // namespace
}  // namespace redfuser::ep
