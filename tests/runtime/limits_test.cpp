// --memory-limit counts inputs, working memory, strings and results; --time-limit counts writing
// and computing. Runs within the limits are not affected.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "redfuser/io.h"
#include "redfuser/memory_limit.h"
#include "redfuser/redfuser.h"
#include "support/proto_file.h"
#include "support/text_model.h"
#include "support/tools_fixture.h"

namespace redfuser {
namespace {

constexpr const char* kNegate = "g (float[n] x) => (float[n] y) { y = Neg(x) }";

class LimitsTest : public ToolsTest {
 protected:
  void expect_refused(const Finished& finished, const std::string& part) const {
    EXPECT_EQ(finished.code, 2) << part;
    EXPECT_NE(finished.errors.find(part), std::string::npos) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1);
  }
};

Tensor zeros(DType dtype, Dims dims) {
  Tensor tensor(dtype, std::move(dims));
  std::fill_n(static_cast<char*>(tensor.mutable_data()), tensor.bytes(), 0);
  return tensor;
}

TEST_F(LimitsTest, MemoryLimitCountsInputs) {
  const TextModel model(kNegate);
  const NamedTensors inputs{{"x", zeros(DType::Float32, {1 << 20})}};
  for (const std::string name : {"in.npz", "in.npy", "in.json"}) {
    save_tensors(path(name), inputs);
    const std::string arguments = model.path() + " --inputs " + path(name) + " --memory-limit ";
    expect_refused(run("redfuser-run", arguments + "1M"), path(name));
    // The input fits, its negation does not fit beside it.
    expect_refused(run("redfuser-run", arguments + "6M"), "Neg_0");
    EXPECT_EQ(run("redfuser-run", arguments + "64M").code, 0) << name;
  }
}

// Inputs and results fit into the limit, the kernel's working memory does not.
TEST_F(LimitsTest, MemoryLimitCountsWorkingMemory) {
  const struct {
    const char *text, *input, *node, *limit;
    DType dtype;
    Dims dims;
  } cases[] = {
      {"g (float[1, n, 1] x) => (float[1, m, 2] y) { y = DFT(x) }",
       "x",
       "DFT_0",
       "12M",
       DType::Float32,
       {1, 200'003, 1}},
      {"g (int64[n] x) => (int64[m] y) { y = Unique(x) }",
       "x",
       "Unique_0",
       "12M",
       DType::Int64,
       {1'000'000}},
      {"g (float[n, n] x) => (float y) { y = Det(x) }",
       "x",
       "Det_0",
       "6M",
       DType::Float32,
       {1000, 1000}},
      {"g (float[1, 1, n] x, float[1, 4, 1] w, float[1, 4, 1] r) => (float[1, 1, b, 1] y) "
       "{ t = Transpose<perm = [0, 2, 1]>(x) y, h = LSTM<hidden_size = 1>(t, w, r) }",
       "x",
       "LSTM_1",
       "9M",
       DType::Float32,
       {1, 1, 500'000}},
  };
  for (const auto& c : cases) {
    const TextModel model(c.text);
    NamedTensors inputs{{c.input, zeros(c.dtype, c.dims)}};
    if (std::string(c.node) == "LSTM_1") {
      inputs.emplace("w", zeros(DType::Float32, {1, 4, 1}));
      inputs.emplace("r", zeros(DType::Float32, {1, 4, 1}));
    }
    save_tensors(path("in.npz"), inputs);
    const std::string arguments = model.path() + " --inputs " + path("in.npz");
    expect_refused(run("redfuser-run", arguments + " --memory-limit " + c.limit), c.node);
    EXPECT_EQ(run("redfuser-run", arguments + " --memory-limit 512M").code, 0) << c.node;
  }
}

// Strings of up to 16 MB, twice: each alone is within the limit.
TEST_F(LimitsTest, MemoryLimitCountsTexts) {
  std::string text =
      "g (string[1] x, string[1] z) => (string[1] y0, string[1] y1) { a0 = Identity(x) "
      "b0 = StringConcat(x, z) ";
  for (int i = 0; i < 24; ++i) {
    for (const char chain : {'a', 'b'}) {
      text += fmt::format("{0}{1} = StringConcat({0}{2}, {0}{2}) ", chain, i + 1, i);
    }
  }
  const TextModel model(text + "y0 = Identity(a24) y1 = Identity(b24) }", 20);
  std::ofstream(path("in.json")) << R"({"x": ["p"], "z": ["q"]})";
  const std::string arguments = model.path() + " --inputs " + path("in.json");
  expect_refused(run("redfuser-run", arguments + " --memory-limit 64M"), "StringConcat_");
  EXPECT_EQ(run("redfuser-run", arguments + " --memory-limit 512M").code, 0);
}

// A row of many pieces among empty ones: 1000 times 20,000 texts.
TEST(Limits, SplitTextsTakeNoMemoryBeforeTheyAreCounted) {
  const TextModel model(
      "g (string[n] x) => (string[n, m] y, int64[n] k) { y, k = StringSplit(x) }");
  Session session(compile(Model::load(model.path())));
  std::vector<std::string> texts(1000);
  for (int i = 0; i < 20'000; ++i) texts[0] += "a ";
  const NamedTensors inputs{{"x", Tensor::strings({1000}, texts)}};
  const MemoryLimit limit(64 << 20);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THROW(session.run(inputs), UserError);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kB";
}

TEST(Limits, CountAgainstThoseAround) {
  const MemoryLimit outer(1000);
  {
    const MemoryLimit inner(100'000);
    EXPECT_EQ(MemoryLimit::left(), 1000);
    const Tensor tensor(DType::UInt8, {600});
    EXPECT_EQ(MemoryLimit::left(), 400);
    EXPECT_THROW(Tensor(DType::UInt8, {500}), UserError);
    EXPECT_EQ(MemoryLimit::left(), 400);
    const MemoryLimit none(0);
    const Tensor free(DType::UInt8, {5000});
  }
  EXPECT_EQ(MemoryLimit::left(), 1000);
  EXPECT_EQ(outer.peak_bytes(), 600);
}

TEST_F(LimitsTest, TimeLimitsAreNumbersOfSeconds) {
  const TextModel model(kNegate);
  for (const std::string tool : {"redfuser-run", "redfuser-opt"}) {
    const std::string arguments = model.path() + " --dump graph --time-limit ";
    for (const char* limit : {"nan", "-1", "-inf", "soon"}) {
      expect_refused(run(tool, arguments + limit), "--time-limit");
    }
    for (const char* limit : {"0", "60", "1e10", "1e300", "inf"}) {
      EXPECT_EQ(run(tool, arguments + limit).code, 0) << tool << " " << limit;
    }
  }
}

// A pipe that nobody reads.
TEST_F(LimitsTest, TimeLimitCountsWriting) {
  const TextModel model(kNegate);
  ASSERT_EQ(mkfifo(path("pipe.npz").c_str(), 0600), 0);
  expect_refused(
      run("redfuser-run", model.path() + " --outputs " + path("pipe.npz") + " --time-limit 1"),
      "the time limit of 1 s (--time-limit) is over");
}

// More steps than a plan may have nodes.
TEST_F(LimitsTest, LoopsRunAsLongAsTheyAreTold) {
  const TextModel model(
      "g (int64 trips, float x) => (float y) {"
      "  y = Loop <body = b (int64 i, bool go, float a) => (bool go, float d) { d = Neg(a) }>"
      "      (trips, \"\", x) }");
  std::ofstream(path("in.json")) << R"({"trips": 500001, "x": 1})";
  const Finished finished = run("redfuser-run", model.path() + " --inputs " + path("in.json") +
                                                    " --outputs " + path("out.json"));
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(load_tensors(path("out.json")).begin()->second.as<float>()[0], -1);
}

// The error names the loop that does not end, in a plan and without one.
TEST_F(LimitsTest, TimeLimitNamesTheStep) {
  const std::string loop =
      "endless = Loop <body = b (int64 i, bool go, float a) => (bool on, float d) { d = Neg(a) "
      "on = Identity(go) }> (\"\", c, x) ";
  const TextModel planned("g (bool c, float x) => (float y) { " + loop + "y = Neg(endless) }");
  const TextModel open(
      "g (bool c, float x) => (float y) { q = If(c) <then_branch = t () => "
      "(float a) { a = Neg(x) }, else_branch = e () => (float[1] b) "
      "{ z = Constant<value_ints = [0]>() b = Unsqueeze(x, z) }> " +
      loop + "y = Add(endless, q) }");
  std::ofstream(path("in.json")) << R"({"c": true, "x": 1})";
  const std::string inputs = " --inputs " + path("in.json") + " --time-limit 1";
  expect_refused(run("redfuser-run", planned.path() + inputs), "is over, in step \"Loop_0\"");
  expect_refused(run("redfuser-run", open.path() + inputs), "is over, in step \"main graph\"");
}

TEST_F(LimitsTest, LoopsThatComputeNothingEnd) {
  const TextModel model(
      "g (bool c) => (bool y) { y = Loop <body = b (int64 i, bool go, bool a) => (bool go, bool a) "
      "{ }> (\"\", c, c) }");
  std::ofstream(path("in.json")) << R"({"c": true})";
  expect_refused(run("redfuser-run", model.path() + " --inputs " + path("in.json")),
                 "iterations compute nothing");
}

}  // namespace
}  // namespace redfuser
