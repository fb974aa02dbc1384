// Running reductions on the CPU against the reference, which runs node by node.
#include <gtest/gtest.h>

#include <limits>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "support/scan_cases.h"

namespace redfuser::testing {
namespace {

NamedTensors run_on(const std::string& device, const Program& program, const NamedTensors& inputs) {
  SessionOptions options;
  options.device = device;
  return Session(program, options).run(inputs);
}

class Scan : public ::testing::TestWithParam<ScanCase> {};

TEST_P(Scan, AgreesWithTheReference) {
  const ScanCase& c = GetParam();
  for (const auto& [m, n] : {std::pair{1, 1}, {3, 17}, {17, 3}, {2, 1100}, {1100, 2}}) {
    const Model model = Model::parse(scan_graph(c, std::to_string(m), std::to_string(n)));
    RandomOptions random;
    random.seed = static_cast<uint64_t>(m * 4000 + n);
    if (c.exact) random.ranges["x"] = {0, 100};
    const NamedTensors inputs = random_inputs(model, random);
    const Program program = compile(model);
    const Tolerance tolerance = c.exact ? Tolerance{0, 0} : Tolerance{5e-3, 5e-3};
    for (const Comparison& result :
         compare(run_on("cpu", program, inputs), run_on("reference", program, inputs), tolerance)) {
      EXPECT_TRUE(result.passed) << m << " x " << n << ": " << describe(result);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Scan, ::testing::ValuesIn(kScanCases),
                         [](const auto& info) { return std::string(info.param.name); });

// NaN and infinities reach what comes after them alone; a long line takes linear time.
TEST(ScanValues, SpoilNothingBeforeThem) {
  constexpr int64_t kLength = 1 << 20, kAt = 1000;
  const Model model = Model::parse(scan_graph(kScanCases[2], "1", std::to_string(kLength)));
  Tensor x(DType::Float32, {1, kLength});
  for (int64_t i = 0; i < kLength; ++i) x.as<float>()[i] = i % 2 ? 1.0f : -1.0f;
  x.as<float>()[kAt] = std::numeric_limits<float>::infinity();
  x.as<float>()[kAt + 2] = -std::numeric_limits<float>::infinity();
  const Tensor y = run_on("cpu", compile(model), {{"x", x}}).at("y");
  EXPECT_EQ(y.as<float>()[kAt], 0.0f);
  EXPECT_EQ(y.as<float>()[kAt + 2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(y.as<float>()[kLength - 1] != y.as<float>()[kLength - 1]);
}

}  // namespace
}  // namespace redfuser::testing
