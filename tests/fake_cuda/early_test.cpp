// A GPU that is opened ahead of its session.
#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

class Early : public FakeGpu {
 protected:
  void run(const std::string& graph) {
    Session session(compile(model(graph)), options);
    session.run({{"x", vector_of(3)}});
    EXPECT_GT(gpu->contexts, 0);
  }
};

TEST_F(Early, ASessionRunsAndTheContextIsGivenBack) {
  {
    GpuWarmup early;
    run(kExp);
    run(kExp);
  }
  EXPECT_EQ(gpu->contexts, 0);
}

TEST_F(Early, EndsWithoutASession) {
  { GpuWarmup early; }
  EXPECT_EQ(gpu->contexts, 0);
  EXPECT_EQ(gpu->proposals_asked, 0);
  run(kExp);
  EXPECT_EQ(gpu->contexts, 0);
}

TEST_F(Early, ServesOneAfterTheOtherAndOneWithinTheOther) {
  for (int i = 0; i < 3; ++i) {
    GpuWarmup early;
    GpuWarmup within;
    run(kExp);
  }
  EXPECT_EQ(gpu->contexts, 0);
}

TEST_F(Early, WhatFailsComesFromTheSession) {
  gpu->devices = 0;
  GpuWarmup early;
  expect_mentions(error_of([&] { Session(compile(model(kExp)), options); }), "shows no GPU");
  options.device = "auto";
  EXPECT_EQ(Session(compile(model(kExp)), options).device(), "cpu");
}

TEST_F(Early, ProposalsAreLoadedForProductsAlone) {
  {
    GpuWarmup early;
    Session(compile(model(kExp)), options);
  }
  EXPECT_EQ(gpu->proposals_asked, 0);
  {
    GpuWarmup early;
    Session(compile(model("g (float[n, 64] x, float[64, 8] w) => (float[n, 8] y) "
                          "{ y = MatMul(x, w) }")),
            options);
  }
  EXPECT_EQ(gpu->proposals_asked, 1);
}

}  // namespace
}  // namespace redfuser::device_tests
