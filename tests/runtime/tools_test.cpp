// The command-line tools, run as a user runs them: exit codes, messages, files.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "redfuser/io.h"
#include "support/proto_file.h"
#include "support/text_model.h"
#include "support/tools_fixture.h"

namespace redfuser {
namespace {

constexpr const char* kText =
    "g (float[batch, n] x) => (float[batch, n] y) { y = Softmax<axis = -1>(x) }";

TEST_F(ToolsTest, CallersErrorsAreOneLine) {
  const TextModel model(kText);
  const std::string run_errors[] = {
      "",
      "/no/such/model.onnx",
      model.path() + " --no-such-option",
      model.path() + " --device cuda",
      model.path() + " --device tpu",
      model.path() + " --dim seq=4",
      model.path() + " --dim n",
      model.path() + " --shape x:1,a",
      model.path() + " --shape x:1,2,3",
      model.path() + " --inputs /no/such/file.npz",
      model.path() + " --inputs z=/no/such/file.npy",
      model.path() + " --compare /no/such/file.npz",
      model.path() + " --memory-limit 12X",
      model.path() + " --memory-limit 1 --dim n=100",
      model.path() + " --assert-fused 'everything>=1'",
      model.path() + " --assert-fused attention",
      model.path() + " --dump program",
      model.path() + " --iterations 0",
      model.path() + " --rtol inf",
      model.path() + " --rtol nan",
      model.path() + " --atol=-1",
      model.path() + " --outputs " + path("out.txt"),
  };
  for (const std::string& arguments : run_errors) {
    const Finished finished = run("redfuser-run", arguments);
    EXPECT_EQ(finished.code, 2) << arguments;
    EXPECT_EQ(finished.errors.substr(0, 7), "error: ") << arguments;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1) << arguments;
  }
  EXPECT_EQ(run("redfuser-opt", model.path()).code, 2);
  EXPECT_EQ(run("redfuser-opt", model.path() + " " + path("o.onnx") + " --emit magic").code, 2);
}

TEST_F(ToolsTest, RunComparesAndReports) {
  const TextModel model(kText);
  const std::string size = " --dim batch=2 --dim n=9";
  ASSERT_EQ(run("redfuser-run", model.path() + size + " --outputs " + path("o.npz")).code, 0);
  EXPECT_EQ(run("redfuser-run", model.path() + size + " --compare " + path("o.npz")).code, 0);
  const Finished other =
      run("redfuser-run", model.path() + size + " --seed 5 --compare " + path("o.npz"));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.output.find("FAIL"), std::string::npos);
  EXPECT_EQ(run("redfuser-run", model.path() + size + " --verify").code, 0);
  const Finished json = run("redfuser-run", model.path() + size + " --iterations 3 --json -");
  ASSERT_EQ(json.code, 0);
  const nlohmann::json report = nlohmann::json::parse(json.output);
  EXPECT_EQ(report["time"]["iterations"], 3);
  EXPECT_EQ(report["outputs"][0]["shape"], nlohmann::json({2, 9}));
}

// Sizes that nobody gave are told with the error that they may have caused.
TEST_F(ToolsTest, AssumedSizesAreToldWithErrors) {
  const TextModel model(
      "g (float[batch, n] x, float[4, m] w) => (float[batch, m] y) { y = MatMul(x, w) }");
  const Finished assumed = run("redfuser-run", model.path() + " --device cpu --dim m=2");
  EXPECT_EQ(assumed.code, 2);
  for (const char* part : {"batch, n, taken as 1", "--dim", "--shape"}) {
    EXPECT_NE(assumed.errors.find(part), std::string::npos) << assumed.errors;
  }
  const Finished given =
      run("redfuser-run", model.path() + " --device cpu --dim m=2 --shape x:2,3");
  EXPECT_EQ(given.code, 2);
  EXPECT_EQ(given.errors.find("taken as 1"), std::string::npos) << given.errors;
  EXPECT_EQ(run("redfuser-run", model.path() + " --device cpu --dim n=4").code, 0);
}

TEST_F(ToolsTest, VerifyCountsSteps) {
  const TextModel model(kText);
  const std::string arguments = model.path() + " --device cpu --dim batch=2 --dim n=9 --verify";
  const nlohmann::json report =
      nlohmann::json::parse(run("redfuser-run", arguments + " --json -").output)["verify"];
  EXPECT_EQ(report["compared_steps"], report["steps"]);
  EXPECT_GT(report["compared_steps"], 0);
  const std::string text = run("redfuser-run", arguments).output;
  EXPECT_NE(text.find("steps"), std::string::npos) << text;
}

TEST_F(ToolsTest, RunReadsEveryKindOfInput) {
  const TextModel model(kText);
  Tensor x(DType::Float32, {1, 2});
  x.as<float>()[0] = x.as<float>()[1] = 0;
  save_tensors(path("in.npz"), {{"x", x}});
  save_tensors(path("in.npy"), {{"x", x}});
  save_tensors(path("in.pb"), {{"x", x}});
  std::ofstream(path("in.json")) << "{\"x\": [[0, 0]]}";
  fs::create_directories(path("set"));
  fs::copy_file(path("in.pb"), path("set/input_0.pb"));
  std::ofstream(path("expected.json")) << "{\"y\": [[0.5, 0.5]]}";
  for (const std::string& source : {path("in.npz"), path("in.npy"), path("in.pb"), path("in.json"),
                                    path("set"), "x=" + path("in.npy")}) {
    const Finished finished =
        run("redfuser-run",
            model.path() + " --compare " + path("expected.json") + " --inputs " + source);
    EXPECT_EQ(finished.code, 0) << source << ": " << finished.errors;
  }
  EXPECT_EQ(run("redfuser-run", "--inputs " + path("in.npz") + " " + model.path()).code, 0);
}

TEST_F(ToolsTest, RunWritesReports) {
  const TextModel model(kText);
  ASSERT_EQ(run("redfuser-run", model.path() + " --profile " + path("t.json") + " --explain " +
                                    path("e.json") + " --outputs " + path("outputs"))
                .code,
            0);
  EXPECT_FALSE(nlohmann::json::parse(read(path("t.json")))["traceEvents"].empty());
  EXPECT_TRUE(nlohmann::json::parse(read(path("e.json"))).contains("fused"));
  EXPECT_TRUE(fs::exists(path("outputs/output_0.pb")));
  EXPECT_NE(run("redfuser-run", model.path() + " --dump graph").output.find("Exp"),
            std::string::npos);
}

TEST_F(ToolsTest, ExplanationsSayWhatComputesTheSteps) {
  const TextModel divided(
      "g (float[1, 2, 128, 320] q, float[1, 2, 320, 128] k, float[1, 2, 128, 320] v) => "
      "(float[1, 2, 128, 320] y) { s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }");
  const std::string text = run("redfuser-opt", divided.path() + " --explain --target sm_80").output;
  for (const char* part :
       {"step 0 by products apart: faster by estimate (", " us by estimate", "not row_passes, ",
        "not attention: the heads are larger than 256", "other steps on sm_80\n  none\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  const TextModel open(kText);
  EXPECT_NE(run("redfuser-opt", open.path() + " --explain").output.find("sizes that the file"),
            std::string::npos);
  const std::string on_cpu = run("redfuser-run", open.path() + " --explain --json " + path("r") +
                                                     " --profile " + path("p") + " --device cpu")
                                 .output;
  EXPECT_NE(on_cpu.find("step 0 by whole_rows (whole_rows rows=1), "), std::string::npos) << on_cpu;
  EXPECT_NE(on_cpu.find(" us measured\n"), std::string::npos) << on_cpu;
  const auto report = nlohmann::json::parse(read(path("r")));
  EXPECT_EQ(report["steps"][0]["family"], "whole_rows");
}

TEST_F(ToolsTest, AssertionsDecideTheExitCode) {
  const TextModel model(kText);
  for (const std::string tool : {"redfuser-run", "redfuser-opt"}) {
    EXPECT_EQ(run(tool, model.path() + " --assert-fused 'row==1'").code, 0) << tool;
    EXPECT_EQ(run(tool, model.path() + " --assert-fused 'attention>=1'").code, 1) << tool;
  }
}

// Every limit ends in success or in one line that says which limit it was.
TEST_F(ToolsTest, AnyMemoryLimitEndsWell) {
  // The large constant is evaluated ahead; the loop and what follows it, in the run.
  const TextModel model(
      "g (float[n] x, int64 k) => (float[m] y, float[i] z) {"
      "  shape = Constant<value = int64[1] {1000000}>() c = ConstantOfShape(shape)"
      "  s = ReduceSum(c) w = Mul(x, s) zero = Constant<value = int64 {0}>() y = CumSum(w, zero)"
      "  z = Loop <body = b (int64 i, bool go, float[p] a) => (bool on, float[q] d) "
      "{ on = Identity(go) d = Concat<axis = 0>(a, a) }> (k, \"\", x) }");
  for (const std::string tool : {"redfuser-run", "redfuser-opt"}) {
    const std::string what = tool == "redfuser-run" ? " --dim n=4" : " --dump plan";
    int refused = 0;
    for (const std::string limit : {"1", "1K", "100K", "1M", "4M", "16M", "512M"}) {
      const Finished finished = run(tool, model.path() + what + " --memory-limit " + limit);
      EXPECT_TRUE(finished.code == 0 || finished.code == 2) << tool << " " << limit;
      if (finished.code == 0) continue;
      ++refused;
      EXPECT_TRUE(finished.errors.find("memory") != std::string::npos) << finished.errors;
      EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1);
    }
    EXPECT_GT(refused, 0) << tool;
    EXPECT_EQ(run(tool, model.path() + what).code, 0) << tool;
  }
}

// The values of a loop double at every trip: 4 floats become 64 GB.
TEST_F(ToolsTest, MemoryLimitHoldsWhileEvaluating) {
  const TextModel model(
      "g (float[n] x, int64 trips) => (float[m] y) {"
      "  y = Loop <body = b (int64 i, bool go, float[p] a) => (bool on, float[q] d) "
      "{ on = Identity(go) d = Concat<axis = 0>(a, a) }> (trips, \"\", x) }");
  std::ofstream(path("in.json")) << "{\"x\": [1, 2, 3, 4], \"trips\": 32}";
  const Finished finished =
      run("redfuser-run", model.path() + " --inputs " + path("in.json") + " --memory-limit 64M");
  EXPECT_EQ(finished.code, 2);
  EXPECT_NE(finished.errors.find("left of the memory limit"), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find("\"Loop_0/"), std::string::npos) << finished.errors;
}

TEST_F(ToolsTest, TimeLimitEndsBothTools) {
  // Half a million nodes to import.
  const ProtoFile slow_to_load("g (float[n] x) => (float[n] y) { y = f.b1(x) }",
                               doubling_functions(19));
  const TextModel slow_to_run(
      "g (float[n, n] x) => (float[n, n] y) { a = MatMul(x, x) b = MatMul(a, x) c = MatMul(b, x) "
      "d = MatMul(c, x) y = MatMul(d, x) }");
  const std::pair<std::string, std::string> commands[] = {
      {"redfuser-opt", slow_to_load.path() + " " + path("o.onnx")},
      {"redfuser-run", slow_to_load.path()},
      {"redfuser-run", slow_to_run.path() + " --dim n=6000 --iterations 100"},
  };
  for (const auto& [tool, arguments] : commands) {
    const auto begin = std::chrono::steady_clock::now();
    const Finished finished = run(tool, arguments + " --time-limit 0.5");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(finished.code, 2) << tool << " " << arguments;
    EXPECT_EQ(finished.errors.find("error: the time limit of 0.5 s (--time-limit) is over"), 0u);
    EXPECT_LT(taken.count(), 5) << tool << " " << arguments;
  }
  const TextModel quick(kText);
  EXPECT_EQ(run("redfuser-run", quick.path() + " --time-limit 60").code, 0);
  EXPECT_EQ(run("redfuser-opt", quick.path() + " --dump graph --time-limit 60").code, 0);
  EXPECT_EQ(run("redfuser-run", quick.path() + " --time-limit -1").code, 2);
}

TEST_F(ToolsTest, OptWritesModelsThatRun) {
  const TextModel model(kText);
  for (const std::string form : {"function", "inline", "standard"}) {
    const Finished finished = run(
        "redfuser-opt", model.path() + " " + path("o.onnx") + " --emit " + form + " --explain -");
    ASSERT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(run("redfuser-run", path("o.onnx")).code, 0) << form;
  }
  ASSERT_EQ(run("redfuser-opt", model.path() + " --svg " + path("p.dot")).code, 0);
  EXPECT_EQ(read(path("p.dot")).substr(0, 7), "digraph");
}

}  // namespace
}  // namespace redfuser
