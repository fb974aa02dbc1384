// Running reductions on a GPU against the CPU: the default for open and known sizes, and every
// configuration; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/scan_cases.h"

namespace redfuser {
namespace {

using testing::kScanCases;
using testing::scan_graph;
using testing::ScanCase;

class CudaScan : public ::testing::TestWithParam<ScanCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }

  void compare_on(const Model& model, Session& gpu, Session& cpu, int64_t m, int64_t n, bool open) {
    const ScanCase& c = GetParam();
    RandomOptions random;
    random.seed = static_cast<uint64_t>(m * 4000 + n);
    if (open) random.symbols = {{"m", m}, {"n", n}};
    if (c.exact) random.ranges["x"] = {0, 100};
    const NamedTensors inputs = random_inputs(model, random);
    const NamedTensors first = gpu.run(inputs);
    // Sums of many elements cancel: errors are relative to the largest result.
    const double half = std::string(c.type).find("16") != std::string::npos ? 1e-2 : 2e-5;
    const double length = std::sqrt(static_cast<double>(std::max(m, n)));
    const Tolerance tolerance = c.exact ? Tolerance{0, 0} : Tolerance{half, half * length};
    for (const Comparison& result : compare(first, cpu.run(inputs), tolerance)) {
      EXPECT_TRUE(result.passed) << m << " x " << n << ": " << describe(result);
    }
    for (const Comparison& result : compare(gpu.run(inputs), first, {0, 0})) {
      EXPECT_TRUE(result.passed) << "a second run differs: " << describe(result);
    }
  }
};

constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1},     {7, 4},     {5, 31},    {31, 5},
                                                  {300, 257}, {3, 20000}, {20000, 3}, {2, 300001}};

TEST_P(CudaScan, AgreesWithTheCpuForOpenSizes) {
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  const Model model = Model::parse(scan_graph(GetParam()));
  const Program program = compile(model);
  Session gpu(program, on_gpu), cpu(program);
  for (const auto& [m, n] : kSizes) compare_on(model, gpu, cpu, m, n, true);
}

TEST_P(CudaScan, AgreesWithTheCpuForKnownSizes) {
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  for (const auto& [m, n] : kSizes) {
    const Model model = Model::parse(scan_graph(GetParam(), std::to_string(m), std::to_string(n)));
    const Program program = compile(model);
    Session gpu(program, on_gpu), cpu(program);
    compare_on(model, gpu, cpu, m, n, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaScan, ::testing::ValuesIn(kScanCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
