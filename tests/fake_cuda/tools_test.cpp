// redfuser-run on a GPU: what it measures, in text and as JSON.
#include <nlohmann/json.hpp>

#include "fake_cuda/device_harness.h"
#include "redfuser/export.h"
#include "support/tools_fixture.h"

namespace redfuser::device_tests {
namespace {

using nlohmann::json;

class GpuTools : public ToolsTest {
 protected:
  void SetUp() override {
    ToolsTest::SetUp();
    if (IsSkipped()) return;
    const Model model = Model::parse(
        "<ir_version: 9, opset_import: [\"\" : 20]> "
        "g (float[n, m] x, float[m, k] w) => (float[n, k] y) "
        "{ p = MatMul(x, w) y = Softmax(p) }");
    save(model, nullptr, {}, path("model.onnx"));
  }

  Finished measure(const std::string& options, const std::string& device = "cuda") const {
    return run("redfuser-run", path("model.onnx") + " --cache off --dim n=64 " +
                                   "--dim m=32 --dim k=48 --device " + device + " " + options);
  }
};

constexpr const char* kParts[] = {"wall_ms",    "latency_ms",        "host_to_device_ms",
                                  "compute_ms", "device_to_host_ms", "enqueue_ms"};

TEST_F(GpuTools, AFamilyThatFailsIsAWarningOnStderr) {
  const Model rows = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[1, 12, 1024, 64] q, float16[1, 12, "
      "1024, 64] k, float16[1, 12, 1024, 64] v) => (float16[1, 12, 1024, 64] y) { "
      "t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax<axis = -1>(s) y = "
      "MatMul(p, v) }");
  save(rows, nullptr, {}, path("attention.onnx"));
  for (const char* variable : {"FAKE_CUDA_FAILS", "FAKE_NVRTC_FAILS"}) {
    setenv(variable, "attention_hopper_", 1);
    const Finished finished =
        run("redfuser-run", path("attention.onnx") + " --cache off --device cuda --explain");
    unsetenv(variable);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_NE(finished.errors.find("warning: attention_hopper fails"), std::string::npos)
        << finished.errors;
    EXPECT_NE(finished.output.find("by attention (attention warps="), std::string::npos)
        << finished.output;
  }
}

// What lies between two events of the fake GPU takes 1 ms.
TEST_F(GpuTools, EveryPartHasItsOwnTimes) {
  for (const std::string resident : {"", " --resident"}) {
    const Finished finished = measure("--iterations 4 --json -" + resident);
    ASSERT_EQ(finished.code, 0) << finished.errors;
    const json report = json::parse(finished.output);
    const json& time = report["time"];
    EXPECT_EQ(time["iterations"], 4);
    EXPECT_EQ(time["resident"], !resident.empty());
    for (const char* part : kParts) {
      ASSERT_TRUE(time.contains(part)) << part;
      for (const char* key : {"min", "mean", "median", "p90", "p95", "p99", "max"}) {
        EXPECT_GE(time[part][key], 0) << part << " " << key;
      }
    }
    const double copies = resident.empty() ? 1 : 0;
    EXPECT_DOUBLE_EQ(time["host_to_device_ms"]["median"], copies);
    EXPECT_DOUBLE_EQ(time["compute_ms"]["p90"], 1);
    EXPECT_DOUBLE_EQ(time["device_to_host_ms"]["max"], copies);
    EXPECT_DOUBLE_EQ(time["latency_ms"]["p99"], 1 + 2 * copies);
    EXPECT_EQ(report["gpu"]["sm_mhz"], 1755);
    EXPECT_EQ(report["gpu"]["max_sm_mhz"], 1980);
    EXPECT_DOUBLE_EQ(report["gpu"]["power_w"], 312.5);
    EXPECT_FALSE(report.contains("profile"));
  }
}

TEST_F(GpuTools, TextHasATableAndTheClocks) {
  const std::string text = measure("--iterations 2 --resident").output;
  for (const char* part : {"host to device", "compute", "device to host", "enqueue", "median",
                           "p95", "on the device", "SM 1755 of 1980 MHz", "41 °C"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string once = measure("").output;
  EXPECT_NE(once.find("compute 1.000 ms"), std::string::npos) << once;
}

TEST_F(GpuTools, ProfileHasEveryKernel) {
  const Finished finished = measure("--iterations 2 --json - --profile " + path("trace.json"));
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json profile = json::parse(finished.output)["profile"];
  EXPECT_EQ(profile["runs"], 2);
  double shares = 0;
  int kernels = 0;
  for (const json& step : profile["steps"]) {
    shares += step["share"].get<double>();
    if (!step.contains("kernels")) continue;
    EXPECT_GT(step["bytes"], 0) << step;
    EXPECT_GT(step["gb_per_s"], 0) << step;
    for (const json& kernel : step["kernels"]) {
      EXPECT_EQ(kernel["us"], 1000) << kernel;
      ++kernels;
    }
  }
  EXPECT_DOUBLE_EQ(shares, 1);
  int spans = 0;
  const json trace = json::parse(read(path("trace.json")));
  for (const json& event : trace["traceEvents"]) {
    spans += event["ph"] == "X" && event["tid"] == 2;
  }
  EXPECT_GT(kernels, 1);
  EXPECT_EQ(spans, 2 * kernels) << "of two runs";
  EXPECT_NE(measure("--profile " + path("trace.json")).output.find("GB/s"), std::string::npos);
}

TEST_F(GpuTools, TheCpuHasTheSameKeysWithoutADevice) {
  const Finished finished = measure("--iterations 3 --resident --json -", "cpu");
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json report = json::parse(finished.output);
  EXPECT_TRUE(report["time"].contains("wall_ms"));
  EXPECT_FALSE(report["time"].contains("compute_ms"));
  EXPECT_FALSE(report["time"]["resident"]);
  EXPECT_FALSE(report.contains("gpu"));
  EXPECT_NE(finished.errors.find("--resident"), std::string::npos);
}

}  // namespace
}  // namespace redfuser::device_tests
