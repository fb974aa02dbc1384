// Recurrent layers: their clusters are launched as a driver allows them, and where it does not, the
// next family is taken.
#include <algorithm>

#include "fake_cuda/device_harness.h"
#include "support/recurrent_graphs.h"

namespace redfuser::device_tests {
namespace {

using redfuser::testing::recurrent_model;
using redfuser::testing::RecurrentCase;

class Recurrent : public FakeGpu {
 protected:
  // Of any batch, and of three sequences.
  static constexpr RecurrentCase kAny = {"any", "LSTM", 512, "float16", "bidirectional",
                                         "",    "bl",   "t", "n",       64};
  static constexpr RecurrentCase kThree = {"three", "LSTM", 512, "float16", "bidirectional",
                                           "",      "bl",   "t", "3",       64};

  static NamedTensors inputs(int64_t steps, int64_t batch, int length) {
    NamedTensors inputs = {{"x", Tensor(DType::Float16, {steps, batch, 64})},
                           {"w", Tensor(DType::Float16, {2, 2048, 64})},
                           {"r", Tensor(DType::Float16, {2, 2048, 512})},
                           {"b", Tensor(DType::Float16, {2, 4096})},
                           {"l", Tensor(DType::Int32, {batch})}};
    std::fill_n(inputs.at("l").as<int>(), batch, length);
    return inputs;
  }
  static std::string family(const Session& session) {
    return session.step_facts().at(0).kernels.back().family;
  }
  // Of the recurrence, behind the product of its inputs.
  unsigned blocks() const { return gpu->launches.back().grid[0]; }
};

TEST_F(Recurrent, LaunchesAClusterForEveryDirectionAndTileOfTheBatch) {
  Session session(compile(Model::parse(recurrent_model(kAny))), options);
  for (const int64_t batch : {1, 8, 33}) {
    gpu->launches.clear();
    session.run(inputs(5, batch, 3));
    EXPECT_TRUE(gpu->refusals.empty()) << gpu->refusals[0];
    EXPECT_EQ(gpu->launches.size(), 2u) << "a product and a kernel for " << batch;
    EXPECT_EQ(blocks() % 16, 0u) << "whole clusters for " << batch;
  }
}

TEST_F(Recurrent, SixteenBlocksHaveADirection) {
  Session session(compile(Model::parse(recurrent_model(kThree))), options);
  session.run(inputs(5, 3, 3));
  EXPECT_EQ(family(session), "recurrent_wide");
  EXPECT_EQ(blocks(), 32u);
}

TEST_F(Recurrent, SmallerClustersServeWhereLargeOnesHaveNoRoom) {
  gpu->crowded = [](const std::string& text) {
    return text.find("recurrent_wide") != std::string::npos;
  };
  Session session(compile(Model::parse(recurrent_model(kThree))), options);
  session.run(inputs(5, 3, 3));
  EXPECT_EQ(family(session), "recurrent_cluster");
  EXPECT_TRUE(gpu->refusals.empty());
}

TEST_F(Recurrent, BeforeClustersBlocksExchangeThroughMemoryOrOneServes) {
  gpu->architecture = 80;
  Session of_three(compile(Model::parse(recurrent_model(kThree))), options);
  of_three.run(inputs(5, 3, 3));
  EXPECT_EQ(family(of_three), "recurrent_grid");
  Session of_any(compile(Model::parse(recurrent_model(kAny))), options);
  of_any.run(inputs(5, 3, 3));
  EXPECT_EQ(family(of_any), "recurrent_block");
  EXPECT_TRUE(gpu->refusals.empty());
}

TEST_F(Recurrent, LengthsThatTheHostHasAreChecked) {
  Session session(compile(Model::parse(recurrent_model(kThree))), options);
  for (const int length : {-1, 6}) {
    expect_mentions(error_of([&] { session.run(inputs(5, 3, length)); }), "length");
  }
}

}  // namespace
}  // namespace redfuser::device_tests
