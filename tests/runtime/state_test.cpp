// States between runs: their pairs, values, lengths and errors.
#include <gtest/gtest.h>

#include <numeric>

#include "redfuser/redfuser.h"
#include "redfuser/state.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

Model parsed(const std::string& graph) {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
}

// y is the sum over all positions so far.
constexpr const char* kSum =
    "g (float[b, s, 2] x, float[b, p, 2] past_0) => (float[b, 2] y, float[b, t, 2] present_0) {"
    "  present_0 = Concat<axis = 1>(past_0, x)"
    "  a = Constant<value = int64[1] {1}>()"
    "  y = ReduceSum<keepdims = 0>(present_0, a)"
    "}";
constexpr const char* kRecurrent =
    "g (float[b, 2] x, float[b, 2] h) => (float[b, 2] y, float[b, 2] next) {"
    "  next = Add(h, x)  y = Neg(next) }";

Tensor counted(Dims dims, float first = 1) {
  Tensor tensor(DType::Float32, std::move(dims));
  std::iota(tensor.as<float>(), tensor.as<float>() + tensor.size(), first);
  return tensor;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.size()};
}

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
  }
}

class StatesTest : public testing::Test {
 protected:
  explicit StatesTest(Model of = parsed(kSum)) : model(std::move(of)), session(compile(model)) {}
  States states(StateOptions options = {}) { return States(session, model, options); }

  Model model;
  Session session;
};

TEST_F(StatesTest, ContinueFromRunToRun) {
  States continued = states();
  EXPECT_EQ(continued.length(), 0);
  const NamedTensors first = continued.run({{"x", counted({1, 3, 2})}});
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(values(first.at("y")), (std::vector<float>{9, 12}));
  EXPECT_EQ(values(continued.run({{"x", counted({1, 1, 2}, 10)}}).at("y")),
            (std::vector<float>{19, 23}));
  EXPECT_EQ(continued.length(), 4);
  const Tensor read = continued.read("past_0");
  EXPECT_EQ(read.dims(), (Dims{1, 4, 2}));
  EXPECT_EQ(values(read), (std::vector<float>{1, 2, 3, 4, 5, 6, 10, 11}));
  EXPECT_EQ(values(continued.read("present_0")), values(read));
}

// The next run reads the memory that the last one wrote.
TEST_F(StatesTest, ValuesStayInPlace) {
  States kept = states();
  kept.run({{"x", counted({1, 3, 2})}});
  const DeviceTensor before = kept.tensor("past_0");
  EXPECT_NE(kept.read("past_0").data(), before.data);
  kept.run({{"x", counted({1, 3, 2})}});
  EXPECT_NE(kept.tensor("past_0").data, before.data);
  EXPECT_EQ(static_cast<const float*>(before.data)[5], 6);
}

TEST_F(StatesTest, RewindDropsTheLastPositions) {
  States rewound = states();
  rewound.run({{"x", counted({2, 3, 2})}});
  rewound.rewind(2);
  EXPECT_EQ(rewound.length(), 1);
  EXPECT_EQ(values(rewound.read("past_0")), (std::vector<float>{1, 2, 7, 8}));
  EXPECT_EQ(values(rewound.run({{"x", counted({2, 1, 2}, 20)}}).at("y")),
            (std::vector<float>{21, 23, 29, 31}));
  rewound.rewind(0);
  rewound.rewind(2);
  EXPECT_EQ(rewound.length(), 0);
  EXPECT_EQ(values(rewound.run({{"x", counted({2, 1, 2})}}).at("y")),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(StatesTest, ForksShareAPrefixAlone) {
  States one = states();
  one.run({{"x", counted({1, 2, 2})}});
  States other = one.fork();
  EXPECT_EQ(other.tensor("past_0").data, one.tensor("past_0").data);
  one.run({{"x", counted({1, 1, 2}, 100)}});
  EXPECT_EQ(values(other.run({{"x", counted({1, 1, 2}, 5)}}).at("y")), (std::vector<float>{9, 12}));
  EXPECT_EQ(values(one.read("past_0")), (std::vector<float>{1, 2, 3, 4, 100, 101}));
}

TEST_F(StatesTest, ResetTakesAnotherBatch) {
  States again = states();
  again.run({{"x", counted({1, 2, 2})}});
  const std::string error = error_of([&] { again.run({{"x", counted({3, 1, 2})}}); });
  expect_mentions(error, {"state \"past_0\" has b = 1", "input \"x\" has 3 in dimension 0"});
  EXPECT_EQ(again.length(), 2);
  again.reset();
  EXPECT_EQ(values(again.run({{"x", counted({3, 1, 2})}}).at("y")),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(StatesTest, ErrorsNameTheState) {
  States small = states({{}, 4});
  expect_mentions(error_of([&] { small.read("past_0"); }), {"\"past_0\" is empty"});
  expect_mentions(error_of([&] { small.rewind(1); }), {"\"past_0\" has 0 positions"});
  small.run({{"x", counted({1, 3, 2})}});
  expect_mentions(error_of([&] {
                    small.run({{"x", counted({1, 2, 2})}});
                  }),
                  {"state \"past_0\" holds 3 positions", "capacity of 4", "makes them 5"});
  EXPECT_EQ(small.length(), 3);
  small.run({{"x", counted({1, 1, 2})}});
  expect_mentions(error_of([&] { small.rewind(5); }),
                  {"state \"past_0\" has 4 positions", "rewound by 5"});
  expect_mentions(error_of([&] { small.rewind(-1); }), {"-1"});
  expect_mentions(error_of([&] { small.read("past_9"); }), {"did you mean \"past_0\"?"});
  expect_mentions(error_of([&] {
                    small.run({{"x", counted({1, 1, 2})}, {"past_0", counted({1, 1, 2})}});
                  }),
                  {"state \"past_0\" is not an input"});
  expect_mentions(error_of([&] { states({{}, -1}); }), {"capacity of states is -1"});
}

TEST_F(StatesTest, ARunKeepsTheStatesToItself) {
  States busy = states();
  const NamedTensors inputs{{"x", counted({1, 2, 2})}};
  busy.run(inputs);
  const std::vector<std::function<void()>> calls{
      [&] { busy.read("past_0"); }, [&] { busy.tensor("past_0"); }, [&] { busy.rewind(1); },
      [&] { busy.reset(); },        [&] { busy.fork(); },           [&] { busy.run(inputs); },
  };
  for (const auto& call : calls) {
    std::string error;
    session.on_progress([&](int, int) { error = error_of(call); });
    busy.run(inputs);
    expect_mentions(error, {"state \"past_0\" is in use by a run"});
  }
  session.on_progress([](int, int) { throw UserError("stop"); });
  EXPECT_EQ(error_of([&] { busy.run(inputs); }), "stop");
  session.on_progress(nullptr);
  EXPECT_EQ(busy.length(), 14);
  busy.rewind(14);
}

class Recurrent : public StatesTest {
 protected:
  Recurrent() : StatesTest(parsed(kRecurrent)) {}
};

TEST_F(Recurrent, StatesAreReplaced) {
  States h = states({{{"h", "next", std::nullopt}}});
  EXPECT_FALSE(h.pairs()[0].axis.has_value());
  for (int run = 0; run < 3; ++run) h.run({{"x", counted({1, 2})}});
  EXPECT_EQ(values(h.read("h")), (std::vector<float>{3, 6}));
  EXPECT_EQ(h.length(), 0);
  h.rewind(0);
  expect_mentions(error_of([&] { h.rewind(1); }), {"state \"h\" has no axis"});
  expect_mentions(error_of([&] { states(); }), {"the model has no states"});
}

// A buffer whose size is the file's, or is left open.
TEST(StatesOfFixedSize, StartWithZerosAndDoNotGrow) {
  const Model model = parsed(
      "g (float[s] x, float[4] past_0, float[m] open) => (float[t] present_0, float[m] next) {"
      "  none = Constant<value = int64[1] {1}>()  start = Constant<value = int64[1] {0}>()"
      "  rest = Slice(x, none, end)  end = Constant<value = int64[1] {9}>()"
      "  present_0 = Concat<axis = 0>(past_0, rest)  one = Slice(x, start, none)"
      "  next = Add(open, one) }");
  Session session(compile(model));
  States states(session, model, {{{"open", "next", std::nullopt}}, 3});
  for (const StatePair& pair : states.pairs()) EXPECT_FALSE(pair.axis.has_value());
  states.run({{"x", counted({1})}});
  states.run({{"x", counted({1})}});
  EXPECT_EQ(values(states.read("open")), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(values(states.read("past_0")), (std::vector<float>{0, 0, 0, 0}));
  expect_mentions(error_of([&] {
                    states.run({{"x", counted({2})}});
                  }),
                  {"state \"past_0\" is full: its sizes are 4, but this run makes them 5"});
  expect_mentions(
      error_of([&] {
        States(session, model, {{{"open", "next", std::nullopt}}}).run({{"x", counted({1})}});
      }),
      {"state \"open\": no input of the run has the size \"m\" of its dimension 0"});
}

struct Wrong {
  StatePair pair;
  const char* part;
};

TEST(FindStates, RefusesWrongPairs) {
  const Model model = parsed(
      "g (float[b, s, 2] x, float[b, p, 2] past_0, float[b, 4, 2] fixed, int64[b, p, 2] whole)"
      " => (float[b, t, 2] present_0, float[b, u, v] other, float[b, w, 2] longer) {"
      "  present_0 = Concat<axis = 1>(past_0, x)"
      "  other = Concat<axis = 2>(past_0, present_0)"
      "  longer = Concat<axis = 1>(fixed, x) }");
  const std::vector<StatePair> found = find_states(model);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].axis, 1);
  const Wrong cases[] = {
      {{"past_1", "present_0", 1}, "no input \"past_1\"; did you mean \"past_0\"?"},
      {{"past_0", "present_1", 1}, "no output \"present_1\"; did you mean \"present_0\"?"},
      {{"past_0", "present_0", 3}, "state \"past_0\": axis 3 is not one of its 3 dimensions"},
      {{"whole", "present_0", 1}, "state \"whole\" is int64, but output \"present_0\" is float32"},
      {{"fixed", "longer", 1}, "fixed size 4 along axis 1"},
  };
  for (const Wrong& wrong : cases) {
    expect_mentions(error_of([&] { find_states(model, {wrong.pair}); }), {wrong.part});
  }
  const StatePair right{"past_0", "present_0", -2};
  EXPECT_EQ(find_states(model, {right})[0].axis, 1);
  expect_mentions(error_of([&] {
                    find_states(model, {right, {"past_0", "longer", 1}});
                  }),
                  {"given twice"});
}

TEST(FindStates, AsksForAnAxisThatSizesLeaveOpen) {
  const Model model = parsed(
      "g (float[b, p, q] past_0, float[b, 1] x) => (float[b, v, t] present_0) {"
      "  y = Concat<axis = 2>(past_0, past_0)  present_0 = Concat<axis = 1>(y, y) }");
  expect_mentions(error_of([&] { find_states(model); }), {"differ along 2 axes"});
}

// NonZero's sizes are data's, and so are those along the batch, which x has too.
TEST(FindStates, TakesTheAxisThatNoOtherInputHas) {
  const Model model = parsed(
      "g (float[b] x, float[b, p] past_0) => (float[u, v] present_0) {"
      "  at = NonZero(x)  axes = Constant<value = int64[1] {0}>()  rows = Squeeze(at, axes)"
      "  kept = Gather<axis = 0>(past_0, rows)  present_0 = Concat<axis = 1>(kept, kept) }");
  EXPECT_EQ(find_states(model)[0].axis, 1);
}

// A decoder: the same bits after a rewind, in a fork, and in a run from the start.
class Decoder : public StatesTest {
 protected:
  Decoder()
      : StatesTest(Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx")) {}
  static Tensor integers(const Dims& dims, int64_t first, int64_t step) {
    Tensor tensor(DType::Int64, dims);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.as<int64_t>()[i] = first + step * i;
    return tensor;
  }
  // The logits of so many tokens, the first of them `id`.
  static std::vector<float> step(States& states, int64_t count, int64_t id) {
    const int64_t past = states.length();
    return values(states
                      .run({{"input_ids", integers({1, count}, id, 1)},
                            {"attention_mask", integers({1, past + count}, 1, 0)},
                            {"position_ids", integers({1, count}, past, 1)}})
                      .at("logits"));
  }
};

TEST_F(Decoder, RewindAndForkGiveTheBitsOfAFreshRun) {
  States fresh = states();
  ASSERT_EQ(fresh.pairs().size(), 4u);
  for (const StatePair& pair : fresh.pairs()) EXPECT_EQ(pair.axis, 2);
  step(fresh, 7, 30);
  const std::vector<float> second = step(fresh, 1, 4), third = step(fresh, 1, 5);

  States other = states();
  step(other, 7, 30);
  States fork = other.fork();
  step(other, 2, 60);
  other.rewind(2);
  for (States* tried : {&other, &fork}) {
    EXPECT_EQ(step(*tried, 1, 4), second);
    EXPECT_EQ(step(*tried, 1, 5), third);
    EXPECT_EQ(values(tried->read("past_key_values.1.value")),
              values(fresh.read("past_key_values.1.value")));
  }
}

}  // namespace
}  // namespace redfuser
