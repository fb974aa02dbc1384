// Runs on the CPU that append to states in place, prepared once for many lengths.
#include <gtest/gtest.h>

#include <numeric>

#include "redfuser/device.h"
#include "redfuser/dlpack.h"
#include "redfuser/redfuser.h"
#include "redfuser/state.h"
#include "runtime/cpu/growing_runs.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

Model parsed(const std::string& graph) {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
}

// Attention of x to all positions so far, of which the state has two rows; `present` is the graph
// of the state's output.
std::string attention(const std::string& present) {
  return "g (float[b, 2, s, 4] x, float[b, 2, p, 4] past_0, int64[b, q] seen)"
         " => (float[b, 2, s, 4] y, float[b, 2, t, 4] present_0, bool[b, q] shown) {" +
         present +
         "  turned = Transpose<perm = [0, 1, 3, 2]>(present_0)  scores = MatMul(x, turned)"
         "  shown = Cast<to = 9>(seen)  at = Constant<value = int64[2] {1, 2}>()"
         "  wide = Unsqueeze(shown, at)  low = Constant<value = float {-1e30}>()"
         "  hidden = Where(wide, scores, low)  weights = Softmax<axis = -1>(hidden)"
         "  y = MatMul(weights, present_0) }";
}
const std::string kConcat = "  present_0 = Concat<axis = 2>(past_0, x)";

Tensor waves(const Dims& dims, int phase) {
  Tensor tensor(DType::Float32, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.as<float>()[i] = static_cast<float>((37 * i + 11 * phase) % 64 - 32) / 16;
  }
  return tensor;
}

// The first position of the second row is hidden.
Tensor mask(int64_t batch, int64_t positions) {
  Tensor tensor(DType::Int64, {batch, positions});
  std::fill_n(tensor.as<int64_t>(), tensor.size(), 1);
  if (batch > 1) tensor.as<int64_t>()[positions] = 0;
  return tensor;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.size()};
}

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

class Growing : public testing::Test {
 protected:
  static constexpr int64_t kBatch = 2;

  explicit Growing(const std::string& present = kConcat)
      : model(parsed(attention(present))), program(compile(model)), session(program) {}

  static NamedTensors inputs(int64_t past, int64_t count) {
    return {{"x", waves({kBatch, 2, count, 4}, static_cast<int>(past))},
            {"seen", mask(kBatch, past + count)}};
  }
  // Each run of the states beside one of another session on the whole past.
  void expect_steps(States& states, std::initializer_list<int64_t> counts) {
    Session plain(program);
    for (const int64_t count : counts) {
      const int64_t past = states.length();
      NamedTensors given = inputs(past, count);
      const NamedTensors got = states.run(given);
      given["past_0"] = past == 0 ? Tensor(DType::Float32, {kBatch, 2, 0, 4}) : kept;
      const NamedTensors wanted = plain.run(given);
      kept = wanted.at("present_0");
      expect_near(values(got.at("y")), values(wanted.at("y")));
      EXPECT_EQ(values(states.read("present_0")), values(kept)) << past;
      EXPECT_EQ(got.at("shown").dims(), wanted.at("shown").dims());
    }
  }

  Model model;
  Program program;
  Session session;
  Tensor kept;  // the past of the last expect_steps
};

TEST_F(Growing, HasTheResultsOfTheWholePast) {
  States states(session, model);
  expect_steps(states, {3, 1, 1, 1, 4, 1, 9, 1, 1, 30, 1, 1, 600, 1, 1});
  EXPECT_EQ(states.length(), 656);
}

// Memory beside the new positions stays as it is.
TEST_F(Growing, WritesTheNewPositionsAlone) {
  session.run({{"x", waves({1, 2, 3, 4}, 0)},
               {"seen", mask(1, 3)},
               {"past_0", Tensor(DType::Float32, {1, 2, 0, 4})}});
  const Tensor memory = waves({1, 2, 16, 4}, 5);
  const std::vector<float> before = values(memory);
  DeviceTensor past = dlpack::on_host(memory);
  past.room = past.dims;
  past.dims[2] = 3;
  DeviceTensor present = past;
  present.dims[2] = 5;
  const Tensor x = waves({1, 2, 2, 4}, 9);
  const NamedDeviceTensors outputs = session.enqueue(
      {{"x", dlpack::on_host(x)}, {"seen", dlpack::on_host(mask(1, 5))}, {"past_0", past}},
      {{"present_0", present}});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs.at("present_0").data, memory.data());
  for (int64_t i = 0; i < memory.size(); ++i) {
    const int64_t head = i / 64, position = i / 4 % 16, column = i % 4;
    const bool added = position == 3 || position == 4;
    const float wanted = added ? x.as<float>()[(head * 2 + position - 3) * 4 + column]
                               : before[static_cast<size_t>(i)];
    EXPECT_EQ(memory.as<float>()[i], wanted) << i;
  }
}

// The buffer is the same until it is full, or something else keeps it.
TEST(GrowingBuffer, DoublesWhenItIsFull) {
  const Model model = parsed(
      "g (float[s, 4] x, float[p, 4] past_0) => (float[s, 4] y, float[t, 4] present_0) {"
      "  present_0 = Concat<axis = 0>(past_0, x)  turned = Transpose(present_0)"
      "  scores = MatMul(x, turned)  weights = Softmax<axis = -1>(scores)"
      "  y = MatMul(weights, present_0) }");
  Session session(compile(model));
  States states(session, model);
  const auto data = [&] { return states.tensor("past_0").data; };
  const auto step = [&] { states.run({{"x", waves({1, 4}, 3)}}); };
  for (int i = 0; i < 3; ++i) step();
  const void* first = data();
  for (int64_t length = 4; length <= 16; ++length) {
    step();
    EXPECT_EQ(data(), first) << length;
  }
  step();
  const DeviceTensor kept = states.tensor("past_0");
  EXPECT_NE(kept.data, first);
  step();
  EXPECT_NE(data(), kept.data);
}

TEST_F(Growing, IsPreparedOnceUntilTheMemoryDoubles) {
  const auto compiled = program.handle();
  const ir::Graph& graph = compiled->graph();
  const auto id = [&](const std::string& name) {
    const auto found = std::find_if(graph.values.begin(), graph.values.end(),
                                    [&](const ir::Value& value) { return value.name == name; });
    return static_cast<ir::ValueId>(found - graph.values.begin());
  };
  const std::vector<runtime::GrowingState> states{
      {id("past_0"), id("present_0"), 2, {1, 2, 64, 4}}};
  const auto symbols = [&](int64_t past, int64_t count) {
    std::vector<int64_t> result;
    for (const std::string& name : compiled->symbol_names) {
      result.push_back(name == "p" ? past : name == "s" ? count : name == "q" ? past + count : 1);
    }
    return result;
  };
  runtime::GrowingRuns runs(*compiled, 2);
  EXPECT_EQ(runs.find(states, symbols(16, 1)), nullptr);
  runs.note(symbols(0, 16));
  const auto first = runs.find(states, symbols(16, 1));
  ASSERT_NE(first, nullptr);
  for (int64_t past = 17; past < 32; ++past) {
    runs.note(symbols(past - 1, 1));
    EXPECT_EQ(runs.find(states, symbols(past, 1)), first) << past;
  }
  const auto longer = runs.find(states, symbols(32, 1));
  ASSERT_NE(longer, nullptr);
  EXPECT_NE(longer, first);
  const auto wider = runs.find(states, symbols(20, 3));
  ASSERT_NE(wider, nullptr);
  EXPECT_NE(wider, first);
  EXPECT_EQ(wider->sizes.appends.size(), 1u);
  // Fewer new positions than before are no size that grows backwards.
  runs.note(symbols(20, 3));
  EXPECT_EQ(runs.find(states, symbols(20, 1)), first);
}

TEST_F(Growing, RewindsAndForksInPlace) {
  States states(session, model);
  expect_steps(states, {5, 1, 1});
  const Tensor shared = kept;
  States fork = states.fork();
  expect_steps(states, {4, 1});
  const Tensor own = kept;
  kept = shared;
  expect_steps(fork, {1, 1});
  EXPECT_EQ(values(states.read("past_0")), values(own));
  fork.rewind(2);
  EXPECT_EQ(values(fork.read("past_0")), values(shared));
  kept = shared;
  expect_steps(fork, {3});
  EXPECT_EQ(states.length(), 12);
  const Tensor taken = dlpack::to_tensor(states.tensor("past_0"));
  const std::vector<float> before = values(taken);
  states.rewind(9);
  states.run(inputs(3, 1));
  EXPECT_EQ(values(taken), before);
}

TEST_F(Growing, AFailedRunLeavesThePositions) {
  States states(session, model);
  expect_steps(states, {4, 1});
  session.on_progress([](int done, int total) {
    if (done + 1 == total) throw UserError("stop");
  });
  EXPECT_THROW(states.run(inputs(5, 2)), UserError);
  session.on_progress(nullptr);
  EXPECT_EQ(states.length(), 5);
  EXPECT_EQ(values(states.read("past_0")), values(kept));
  expect_steps(states, {2, 1});
}

TEST_F(Growing, TheCapacityNeedBeNoPowerOfTwo) {
  States states(session, model, {{}, 21});
  expect_steps(states, {15, 1, 1, 3, 1});
  try {
    states.run(inputs(21, 1));
    FAIL() << "the state has 21 positions";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("capacity of 21"), std::string::npos) << error.what();
  }
}

// States that are more than their past and new positions, which a run writes anew, and steps that
// take no memory with room, for which it is copied.
struct NotAppended : Growing, testing::WithParamInterface<const char*> {
  NotAppended() : Growing(GetParam()) {}
};

TEST_P(NotAppended, HasTheResultsOfTheWholePast) {
  States states(session, model);
  expect_steps(states, {3, 1, 1, 1, 4, 1});
}

INSTANTIATE_TEST_SUITE_P(
    Presents, NotAppended,
    testing::Values("  joined = Concat<axis = 2>(past_0, x)  present_0 = Neg(joined)",
                    "  present_0 = Concat<axis = 2>(x, past_0)",
                    "  joined = Concat<axis = 2>(past_0, x)  k = Constant<value = int64[1] {1}>()"
                    "  best, order = TopK<axis = 2, largest = 1>(joined, k)"
                    "  less = Sub(x, best)  present_0 = Concat<axis = 2>(past_0, less)",
                    "  joined = Concat<axis = 2>(past_0, x)"
                    "  total = CumSum(joined, two)  two = Constant<value = int64 {2}>()"
                    "  none = Constant<value = float {0}>()  zeros = Mul(total, none)"
                    "  present_0 = Add(joined, zeros)"));

// A buffer of fixed size beside a mask that grows: its sum is of no kind that takes memory with
// room, and the size of `less` is the smaller, the longer the mask.
TEST(GrowingMask, HasTheResultsOfFixedSizes) {
  const Model model = parsed(
      "g (float[4] x, int64[1, q] seen, float[4] h) => (float[4] next, int64[m] less) {"
      "  one = Constant<value = int64[1] {1}>()  ends = ReduceSum<keepdims = 0>(seen, one)"
      "  count = Cast<to = 1>(ends)  moved = Mul(x, count)  next = Add(h, moved)"
      "  shape = Shape<start = 1>(seen)  most = Constant<value = int64[1] {40}>()"
      "  left = Sub(most, shape)  wide = Expand(ends, left)  less = Neg(wide) }");
  const Program program = compile(model);
  Session session(program), plain(program);
  States states(session, model, {{{"h", "next", std::nullopt}}});
  Tensor h(DType::Float32, {4});
  std::fill_n(h.as<float>(), 4, 0.0F);
  for (int64_t length = 3; length < 36; ++length) {
    NamedTensors inputs{{"x", waves({4}, 1)}, {"seen", mask(1, length)}};
    const NamedTensors got = states.run(inputs);
    inputs["h"] = h;
    const NamedTensors wanted = plain.run(inputs);
    h = wanted.at("next");
    EXPECT_EQ(values(states.read("h")), values(h)) << length;
    const Tensor &less = got.at("less"), &all = wanted.at("less");
    ASSERT_EQ(less.dims(), all.dims());
    EXPECT_TRUE(
        std::equal(less.as<int64_t>(), less.as<int64_t>() + less.size(), all.as<int64_t>()));
  }
}

}  // namespace
}  // namespace redfuser
