// Kernels that do not compile, load or launch: the next offer of the step is taken, with a warning.
#include <fmt/format.h>

#include <cstdlib>

#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

// A variable of the environment while it exists.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

const char* const kAttention =
    "g (float16[1, 12, 1024, 64] q, float16[1, 12, 1024, 64] k, float16[1, 12, 1024, 64] v) => "
    "(float16[1, 12, 1024, 64] y) { t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = "
    "Softmax<axis = -1>(s) y = MatMul(p, v) }";
const char* const kSum =
    "g (float[64, 4096] x) => (float[64] y) { a = Constant<value = int64[1] {1}>() "
    "y = ReduceSum<keepdims = 0>(x, a) }";

class Fallback : public FakeGpu {
 protected:
  // Fails every launch of a kernel whose text has the part.
  void refuse_launches(const std::string& part) {
    gpu->kernel_ms = [part](const std::string& text, unsigned) {
      return text.find(part) == std::string::npos ? 1.0 : -1.0;
    };
  }
  std::vector<std::string> warnings(const Session& session) const {
    std::vector<std::string> found;
    for (const std::string& note : session.notes()) {
      if (note.starts_with("warning")) found.push_back(note);
    }
    return found;
  }
  static NamedTensors inputs() {
    return {{"q", Tensor(DType::Float16, {1, 12, 1024, 64})},
            {"k", Tensor(DType::Float16, {1, 12, 1024, 64})},
            {"v", Tensor(DType::Float16, {1, 12, 1024, 64})}};
  }
  static std::string family(const Session& session) {
    const std::vector<StepKernel> kernels = session.step_facts().at(0).kernels;
    return kernels.empty() ? "" : kernels.back().family;
  }
  void expect_one_warning(const Session& session, const std::string& failed,
                          const std::string& error) {
    ASSERT_EQ(warnings(session).size(), 1u);
    const std::string text = warnings(session)[0];
    expect_mentions(text, failed + " fails and is left out of \"");
    expect_mentions(text, error);
  }
};

TEST_F(Fallback, OfAKernelThatDoesNotCompileTheNextFamilyIsTaken) {
  const Variable failing("FAKE_NVRTC_FAILS", "attention_hopper_");
  Session session(compile(model(kAttention)), options);
  expect_one_warning(session, "attention_hopper", "error: a fake error");
  session.run(inputs());
  EXPECT_EQ(family(session), "attention");
  EXPECT_EQ(gpu->launches.size(), 1u);
  const std::vector<StepFacts> facts = session.step_facts();
  for (const StepCandidate& each : facts.at(0).candidates) {
    EXPECT_EQ(each.configuration.find("attention_hopper"), std::string::npos);
  }
}

TEST_F(Fallback, FamilyAfterFamilyIsLeftOut) {
  const Variable failing("FAKE_NVRTC_FAILS", "attention_");
  Session session(compile(model(kAttention)), options);
  session.run(inputs());
  std::string all;
  for (const std::string& warning : warnings(session)) all += warning + "\n";
  for (const char* family : {"attention", "attention_hopper", "attention_split"}) {
    expect_mentions(all, fmt::format("warning: {} fails", family));
  }
  const StepFacts facts = session.step_facts().at(0);
  EXPECT_EQ(facts.candidates.at(0).refusal, "");
  EXPECT_EQ(facts.family, "products apart");
  EXPECT_EQ(static_cast<int>(facts.kernels.size()), session.launches());
}

TEST_F(Fallback, OfSizesKnownAtRunTimeTheNextFamilyServesAll) {
  std::string graph = kAttention;
  for (size_t at = 0; (at = graph.find("1024", at)) != std::string::npos;)
    graph.replace(at, 4, "n");
  const Variable failing("FAKE_NVRTC_FAILS", "attention_hopper_");
  Session session(compile(model(graph)), options);
  session.run(inputs());
  EXPECT_EQ(family(session), "attention");
  EXPECT_EQ(warnings(session).size(), 1u);
}

TEST_F(Fallback, WhereEveryFamilyFailsTheErrorNamesTheNode) {
  const Variable failing("FAKE_NVRTC_FAILS", "__global__");
  for (const char* graph : {kAttention, kSum, kExp}) {
    const std::string text = error_of([&] { Session(compile(model(graph)), options); });
    expect_mentions(text, "] node \"");
    expect_mentions(text, "no kernel computes it");
    expect_mentions(text, " fails: a kernel does not compile");
  }
}

TEST_F(Fallback, AKernelWithoutRoomOnAMultiprocessorIsLeftOut) {
  gpu->crowded = [](const std::string& text) {
    return text.find("attention_hopper_") != std::string::npos;
  };
  Session session(compile(model(kAttention)), options);
  expect_one_warning(session, "attention_hopper", "the GPU has not the room for a block of");
  session.run(inputs());
  EXPECT_EQ(family(session), "attention");
}

TEST_F(Fallback, AKernelThatDoesNotLaunchIsReplacedInTheFirstRun) {
  refuse_launches("attention_hopper_");
  Session session(compile(model(kAttention)), options);
  EXPECT_TRUE(warnings(session).empty());
  session.run(inputs());
  expect_one_warning(session, "attention_hopper", "a fake error");
  EXPECT_EQ(gpu->launches.size(), 1u);
  EXPECT_EQ(family(session), "attention");
  for (int i = 0; i < 2; ++i) session.run(inputs());
  EXPECT_EQ(gpu->replays, 2);
  EXPECT_EQ(warnings(session).size(), 1u);
}

TEST_F(Fallback, LaunchesOfEveryFamilyMayFail) {
  refuse_launches("__global__");
  Session session(compile(model(kSum)), options);
  const std::string text = error_of([&] {
    session.run({{"x", Tensor(DType::Float32, {64, 4096})}});
  });
  expect_mentions(text, "[ReduceSum] node \"");
  expect_mentions(text, "reduce fails: ");
}

// The scratch buffers of the next offer lie outside of the arena, and move with nothing.
TEST_F(Fallback, AnotherShapesRunHasTheNextFamilyAtOnce) {
  std::string graph = kAttention;
  for (size_t at = 0; (at = graph.find("1024", at)) != std::string::npos;)
    graph.replace(at, 4, "n");
  refuse_launches("attention_");
  Session session(compile(model(graph)), options);
  session.run(inputs());
  const size_t told = warnings(session).size();
  EXPECT_GE(told, 2u);
  EXPECT_TRUE(session.step_facts().at(0).divided);
  NamedTensors shorter;
  for (const auto& [name, tensor] : inputs()) {
    Dims dims = tensor.dims();
    for (int64_t& dim : dims) dim = dim == 1024 ? 512 : dim;
    shorter[name] = Tensor(DType::Float16, dims);
  }
  session.run(shorter);
  session.run(inputs());
  EXPECT_EQ(warnings(session).size(), told);
}

TEST_F(Fallback, AProductOfOursIsTheLibrarysWhereItFails) {
  const char* const product =
      "g (float16[4096, 4096] x, float16[4096, 4096] w, float16[4096, 4096] u) => "
      "(float16[4096, 4096] y) { a = MatMul(x, w) b = MatMul(x, u) c = Sigmoid(a) d = Mul(a, c) "
      "y = Mul(d, b) }";
  {
    Session ours(compile(model(product)), options);
    const Tensor any(DType::Float16, {4096, 4096});
    ours.run({{"x", any}, {"w", any}, {"u", any}});
    ASSERT_EQ(family(ours), "product_tile");
  }
  const Variable failing("FAKE_NVRTC_FAILS", "product_tile_");
  Session session(compile(model(product)), options);
  expect_one_warning(session, "product_tile", "a kernel does not compile");
  const Tensor any(DType::Float16, {4096, 4096});
  session.run({{"x", any}, {"w", any}, {"u", any}});
  EXPECT_EQ(session.step_facts().at(0).family, "library");
}

TEST_F(Fallback, ARowKernelIsAThreadForEachResultWhereItFails) {
  const Variable failing("FAKE_NVRTC_FAILS", " row_");
  Session session(compile(model(kSum)), options);
  session.run({{"x", Tensor(DType::Float32, {64, 4096})}});
  EXPECT_EQ(family(session), "reduce");
  EXPECT_GE(warnings(session).size(), 1u);
}

TEST_F(Fallback, ARunningSumIsASumOfEachRowWhereItFails) {
  const Variable failing("FAKE_NVRTC_FAILS", "scan_");
  Session session(compile(model("g (float[8, 512] x) => (float[8, 512] y) { "
                                "a = Constant<value = int64 {1}>() y = CumSum(x, a) }")),
                  options);
  session.run({{"x", Tensor(DType::Float32, {8, 512})}});
  EXPECT_TRUE(family(session).starts_with("row_")) << family(session);
  EXPECT_GE(warnings(session).size(), 1u);
}

TEST_F(Fallback, EqualStepsThatFailAreOneWarning) {
  const Variable failing("FAKE_NVRTC_FAILS", "attention_hopper_");
  const std::string two =
      "g (float16[1, 12, 1024, 64] q, float16[1, 12, 1024, 64] k, float16[1, 12, 1024, 64] v) => "
      "(float16[1, 12, 1024, 64] z) { t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) "
      "p = Softmax<axis = -1>(s) y = MatMul(p, v) u = MatMul(y, t) r = Softmax<axis = -1>(u) "
      "z = MatMul(r, v) }";
  Session session(compile(model(two)), options);
  expect_one_warning(session, "attention_hopper", "\" and 1 more, which attention computes: ");
}

TEST_F(Fallback, TuningStartsFromTheNextOffer) {
  options.tune = true;
  refuse_launches("attention_hopper_");
  Session session(compile(model(kAttention)), options);
  session.run(inputs());
  ASSERT_EQ(session.tunings().size(), 1u);
  expect_mentions(session.tunings()[0].default_choice, "attention warps=");
  expect_one_warning(session, "attention_hopper", "a fake error");
}

}  // namespace
}  // namespace redfuser::device_tests
