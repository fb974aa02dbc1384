// What redfuser-bench --calibrate measures, on the fake GPU, where every span of time is known.
#include "redfuser/calibrate.h"
#include "fake_cuda/device_harness.h"

namespace redfuser::device_tests {
namespace {

class Calibrate : public FakeGpu {};

TEST_F(Calibrate, RatesFollowFromTimes) {
  gpu->moves_bytes = false;
  gpu->kernel_ms = [](const std::string&, unsigned) { return 0.5; };
  gpu->product_ms = [](int) { return 2.0; };
  const Calibration found = calibrate_gpu();
  EXPECT_EQ(found.device, "Fake GPU");
  EXPECT_EQ(found.architecture, "sm_90a");
  EXPECT_EQ(found.load_clock_mhz, 1755);
  ASSERT_EQ(found.rates.size(), 7u);
  for (const CalibratedRate& rate : found.rates) {
    EXPECT_GT(rate.measured, 0) << rate.name;
    EXPECT_GT(rate.table, 0) << rate.name;
  }
  // 256 MB are read and written in half a millisecond.
  EXPECT_NEAR(found.rates[0].measured, 2.0 * (256 << 20) / 0.5e-3 / 1e9, 0.1);
  const double operations = 2.0 * 8192 * 8192 * 8192 / 2e3;
  EXPECT_NEAR(found.rates[2].measured, operations / (132.0 * found.clock_mhz), 0.1);
  EXPECT_DOUBLE_EQ(found.rates.back().measured, 500);
  ASSERT_EQ(found.rows.size(), 2u);
  expect_mentions(found.rows[0], "{90, ");
  expect_mentions(found.rows[1], "{\"sm_90a\", \"Fake GPU\", {90, 132, 227 * kKilo, ");
}

TEST_F(Calibrate, WithoutAGpuThereIsAnError) {
  gpu->devices = 0;
  expect_mentions(error_of([] { calibrate_gpu(); }), "shows no GPU");
}

}  // namespace
}  // namespace redfuser::device_tests
