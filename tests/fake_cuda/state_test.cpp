// States of a session on a GPU: they stay there, in one buffer that runs append to.
#include <algorithm>
#include <set>
#include <utility>

#include "fake_cuda/device_harness.h"
#include "redfuser/generate.h"

namespace redfuser::device_tests {
namespace {

constexpr const char* kSum =
    "g (float[b, s, 64] x, float[b, p, 64] past_0) => (float[b, 64] y, float[b, t, 64] present_0) {"
    "  present_0 = Concat<axis = 1>(past_0, x)"
    "  a = Constant<value = int64[1] {1}>()"
    "  y = ReduceSum<keepdims = 0>(present_0, a) }";

class StatesOnGpu : public FakeGpu {
 protected:
  StatesOnGpu() : file(model(kSum)), session(compile(file), options), states(session, file) {}
  void step(States& of, int64_t positions = 1, int64_t batch = 1) {
    const Tensor x = vector_of(batch * positions * 64).reshaped({batch, positions, 64});
    of.run({{"x", x}});
  }
  // Of a batch of one, whose memory the tensor shares.
  const void* address() const { return states.tensor("past_0").data; }

  Model file;
  Session session;
  States states;
};

// x goes there and y comes back; the state does neither.
TEST_F(StatesOnGpu, AreNeverCopiedToTheHost) {
  step(states, 5, 2);
  for (int run = 0; run < 6; ++run) {
    gpu->to_device = gpu->to_host = gpu->on_device = 0;
    step(states, 1, 2);
    EXPECT_EQ(gpu->to_device, 1);
    EXPECT_EQ(gpu->to_host, 1);
    EXPECT_EQ(gpu->on_device, 0);
  }
  EXPECT_EQ(states.length(), 11);
  gpu->to_host = 0;
  EXPECT_EQ(states.read("past_0").dims(), (Dims{2, 11, 64}));
  EXPECT_EQ(gpu->to_host, 1);
}

// Choices are timed on memory of the run's own, which has no room for what follows.
TEST_F(StatesOnGpu, AreTunedWithRoomBehindThem) {
  options.tune = true;
  Session tuned(compile(file), options);
  States of(tuned, file);
  for (int64_t run = 0; run < 40; ++run) step(of, run == 0 ? 65 : 1, 16);
  EXPECT_EQ(of.length(), 104);
  EXPECT_FALSE(tuned.tunings().empty());
}

TEST_F(StatesOnGpu, AreAppendedToInOneBufferThatDoubles) {
  step(states);
  const void* const first = address();
  step(states);
  const size_t blocks = gpu->blocks.size();
  while (states.length() < 16) {
    step(states);
    EXPECT_EQ(address(), first);
  }
  gpu->on_device = 0;
  step(states);
  EXPECT_EQ(gpu->on_device, 1);
  EXPECT_EQ(gpu->blocks.size(), blocks);
  const void* const second = address();
  EXPECT_NE(second, first);
  while (states.length() < 32) step(states);
  EXPECT_EQ(address(), second);
  EXPECT_EQ(gpu->on_device, 1);
}

// The step that appends has the state's address twice. Writing 34 positions would take 5 blocks.
TEST_F(StatesOnGpu, ARunWritesTheNewPositionsAlone) {
  step(states, 33, 2);
  gpu->launches.clear();
  step(states, 1, 2);
  bool found = false;
  for (const FakeCuda::Launch& launch : gpu->launches) {
    const std::multiset<uint64_t> arguments(launch.arguments.begin(), launch.arguments.end());
    if (arguments.count(launch.arguments[0]) != 2 || arguments.count(33) == 0) continue;
    found = true;
    EXPECT_EQ(launch.grid[0], 1u);
  }
  EXPECT_TRUE(found);
}

TEST_F(StatesOnGpu, RunsReadTheLastValue) {
  step(states, 3);
  const auto last = reinterpret_cast<uint64_t>(address());
  gpu->launches.clear();
  step(states);
  bool reads = false;
  for (const FakeCuda::Launch& launch : gpu->launches) {
    for (const uint64_t argument : launch.arguments) reads = reads || argument == last;
  }
  EXPECT_TRUE(reads);
}

TEST_F(StatesOnGpu, ForksAndReadersKeepTheirValues) {
  step(states, 3);
  States fork = states.fork();
  const DeviceTensor kept = states.tensor("past_0");
  for (int run = 0; run < 4; ++run) {
    step(states);
    EXPECT_NE(address(), kept.data);
  }
  EXPECT_EQ(fork.tensor("past_0").data, kept.data);
  EXPECT_EQ(fork.length(), 3);
}

// What shares the values after a run was prepared keeps them as well.
TEST_F(StatesOnGpu, APreparedRunLeavesForksAlone) {
  for (int run = 0; run < 3; ++run) step(states);
  states.prepare();
  const States fork = states.fork();
  const void* const shared = fork.tensor("past_0").data;
  step(states);
  EXPECT_NE(address(), shared);
  EXPECT_EQ(fork.length(), 3);
  EXPECT_EQ(states.length(), 4);
  states.prepare();
  const void* const own = address();
  step(states);
  EXPECT_EQ(address(), own);
  states.prepare();
  states.rewind(2);
  step(states, 2);
  EXPECT_EQ(states.length(), 5);
  states.prepare();
  states.reset();
  step(states);
  EXPECT_EQ(states.length(), 1);
}

TEST_F(StatesOnGpu, RewindKeepsTheMemory) {
  step(states, 5);
  const void* const before = address();
  float* const values = static_cast<float*>(states.tensor("past_0").data);
  for (int i = 0; i < 5 * 64; ++i) values[i] = static_cast<float>(i);
  gpu->to_device = gpu->to_host = gpu->on_device = 0;
  states.rewind(2);
  EXPECT_EQ(gpu->on_device + gpu->to_host + gpu->to_device, 0);
  EXPECT_EQ(address(), before);
  const Tensor after = states.read("past_0");
  EXPECT_EQ(after.dims(), (Dims{1, 3, 64}));
  for (const int i : {0, 191}) EXPECT_EQ(after.as<float>()[i], static_cast<float>(i));
  step(states);
  EXPECT_EQ(address(), before);
}

TEST_F(StatesOnGpu, CapacityBoundsTheirMemory) {
  States small(session, file, {{}, 21});
  step(small, 17, 2);
  const auto is_state = [](const auto& block) { return block.second == 2u * 21 * 64 * 4; };
  EXPECT_EQ(std::count_if(gpu->blocks.begin(), gpu->blocks.end(), is_state), 1);
  expect_mentions(error_of([&] { step(small, 5, 2); }), "capacity of 21");
  EXPECT_EQ(small.length(), 17);
}

TEST_F(StatesOnGpu, MemoryWithRoomIsThatOfAState) {
  Tensor x = vector_of(64).reshaped({1, 1, 64});
  const DeviceTensor here{DType::Float32, x.dims(), x.mutable_data(), true, nullptr};
  DeviceTensor past = session.allocate(DType::Float32, {1, 16, 64});
  past.room = {1, 16, 64};
  past.dims = {1, 4, 64};
  DeviceTensor present = past, other = session.allocate(DType::Float32, {1, 5, 64});
  present.dims = {1, 5, 64};
  session.enqueue({{"x", here}, {"past_0", past}}, {{"present_0", present}});
  expect_mentions(error_of([&] {
                    session.enqueue({{"x", here}, {"past_0", past}}, {{"present_0", other}});
                  }),
                  "input \"past_0\" has room, but no output is given its memory to append to it");
  DeviceTensor wide = present;
  wide.room = {2, 16, 64};
  expect_mentions(error_of([&] {
                    session.enqueue({{"x", here}, {"past_0", past}}, {{"present_0", wide}});
                  }),
                  "output \"present_0\" is given memory that has no room along axis 1");
  DeviceTensor y = session.allocate(DType::Float32, {1, 64});
  y.room = {1, 128};
  expect_mentions(
      error_of([&] {
        session.enqueue({{"x", here}, {"past_0", past}}, {{"present_0", present}, {"y", y}});
      }),
      "output \"y\" is given memory with room, but the program does not append to it");
  EXPECT_TRUE(session.appends("past_0", "present_0"));
  EXPECT_FALSE(session.appends("x", "present_0"));
}

TEST_F(StatesOnGpu, StatesThatGrowAlikeHaveEqualRoom) {
  const Model two = model(
      "g (float[b, s, 64] x, float[b, p, 64] past_0, float[b, p, 64] past_1)"
      " => (float[b, t, 64] present_0, float[b, t, 64] present_1) {"
      "  present_0 = Concat<axis = 1>(past_0, x)  present_1 = Concat<axis = 1>(past_1, x) }");
  Session both(compile(two), options);
  Tensor x = vector_of(64).reshaped({1, 1, 64});
  NamedDeviceTensors inputs = {{"x", {DType::Float32, x.dims(), x.mutable_data(), true, nullptr}}};
  NamedDeviceTensors outputs;
  for (const int i : {0, 1}) {
    DeviceTensor state = both.allocate(DType::Float32, {1, 16 << i, 64});
    state.room = std::exchange(state.dims, {1, 4, 64});
    inputs["past_" + std::to_string(i)] = state;
    state.dims = {1, 5, 64};
    outputs["present_" + std::to_string(i)] = state;
  }
  expect_mentions(error_of([&] { both.enqueue(inputs, outputs); }),
                  "outputs \"present_0\" and \"present_1\" grow alike, but not their memory: 16 "
                  "and 32 positions");
}

// One buffer, written in place: every run has the same addresses, so a graph of it is replayed.
void expect_in_place(FakeCuda& gpu, States& states, const std::string& name,
                     const std::function<void()>& run) {
  run();
  run();
  const void* const address = states.tensor(name).data;
  const size_t blocks = gpu.blocks.size();
  gpu.on_device = gpu.replays = gpu.to_host = 0;
  for (int i = 0; i < 4; ++i) {
    run();
    EXPECT_EQ(states.tensor(name).data, address);
  }
  EXPECT_EQ(gpu.on_device, 0);
  EXPECT_EQ(gpu.to_host, 4);
  EXPECT_GE(gpu.replays, 3);
  EXPECT_EQ(gpu.blocks.size(), blocks);
  const States fork = states.fork();
  run();
  EXPECT_NE(states.tensor(name).data, address);
  EXPECT_EQ(fork.tensor(name).data, address);
}

TEST_F(StatesOnGpu, WithoutAnAxisAreWrittenInPlace) {
  const Model recurrent = model(
      "g (float[n] x, float[n] h) => (float[n] y, float[n] next) {"
      "  next = Add(h, x)  y = Neg(x) }");
  Session other(compile(recurrent), options);
  States h(other, recurrent, {{{"h", "next", std::nullopt}}, 0});
  expect_in_place(*gpu, h, "h", [&] { h.run({{"x", vector_of(100)}}); });
}

TEST_F(StatesOnGpu, CachesOfAFixedSizeAreScatteredIntoInPlace) {
  const Model scatter = Model::parse(
      "<ir_version: 10, opset_import: [\"\" : 24]> g (float[b, 2, s, 8] x, int64[b] at,"
      " float[b, 2, 32, 8] past_0) => (float[b, 2, s, 8] y, float[b, 2, 32, 8] present_0) {"
      "  present_0 = TensorScatter<axis = 2>(past_0, x, at)  y = Neg(x) }");
  Session other(compile(scatter), options);
  States cache(other, scatter);
  Tensor at(DType::Int64, {3});
  std::fill_n(at.as<int64_t>(), 3, 4);
  expect_in_place(*gpu, cache, "past_0", [&] {
    cache.run({{"x", vector_of(3 * 2 * 8).reshaped({3, 2, 1, 8})}, {"at", at}});
  });
  for (const int64_t outside : {-1, 32}) {
    std::fill_n(at.as<int64_t>(), 3, outside);
    expect_mentions(error_of([&] {
                      cache.run({{"x", vector_of(3 * 2 * 8).reshaped({3, 2, 1, 8})}, {"at", at}});
                    }),
                    "\"TensorScatter_0\": index 32 is out of range for size 32");
  }
}

// A run's tokens and mask go there, and the next tokens and whether a logit is NaN come back.
TEST_F(StatesOnGpu, LogitsStayThere) {
  const Model decoder = model(
      "g (int64[b, s] input_ids, int64[b, q] attention_mask, float[b, p, 64] past_0)"
      " => (float[b, s, 8] logits, float[b, t, 64] present_0) {"
      "  w = Constant<value = float[1] {2}>()  x = Cast<to = 1>(input_ids)"
      "  a = Constant<value = int64[1] {2}>()  y = Unsqueeze(x, a)"
      "  one = Constant<value = int64[3] {1, 1, 64}>()  z = Expand(y, one)"
      "  present_0 = Concat<axis = 1>(past_0, z)"
      "  eight = Constant<value = int64[3] {1, 1, 8}>()  wide = Expand(y, eight)"
      "  logits = Mul(wide, w) }");
  Session other(compile(decoder), options);
  Generator generator(other, decoder);
  Tensor prompt(DType::Int64, {3, 5});
  std::fill_n(prompt.as<int64_t>(), 15, 0);
  int tokens = 0, drawn = 0;  // drawn: the inputs of a draw
  const auto counted = [&](int64_t row, int64_t) {
    if (row == 2) {
      EXPECT_EQ(gpu->to_host, 2);
      EXPECT_EQ(gpu->to_device, 2 + drawn);
      EXPECT_EQ(gpu->on_device, 0);
      gpu->to_host = gpu->to_device = gpu->on_device = 0;
      ++tokens;
    }
    return true;
  };
  gpu->to_host = gpu->to_device = gpu->on_device = 0;
  generator.generate(prompt, {.max_tokens = 6}, counted);
  drawn = 3;
  generator.generate(prompt, {.max_tokens = 6, .top_k = 2}, counted);
  EXPECT_EQ(tokens, 12);
}

TEST_F(StatesOnGpu, HostsAndGpusExchangePositions) {
  Tensor whole = vector_of(24).reshaped({2, 3, 4});
  const DeviceTensor there = session.to_device({{"t", whole}}).at("t");
  Tensor last(DType::Float32, {2, 1, 4});
  DeviceTensor here{DType::Float32, last.dims(), last.mutable_data(), true, nullptr};
  session.copy_positions(there, 1, 2, here);
  EXPECT_EQ(last.as<float>()[0], 8);
  EXPECT_EQ(last.as<float>()[7], 23);
  expect_mentions(error_of([&] { session.copy_positions(there, 1, 3, here); }),
                  "float32[2,1,4] is not a part of float32[2,3,4] from position 3 of axis 1");
}

TEST_F(StatesOnGpu, PositionsAreCopiedIntoRoomAndOutOfIt) {
  Tensor whole = vector_of(24).reshaped({2, 3, 4});
  const DeviceTensor there = session.to_device({{"t", whole}}).at("t");
  DeviceTensor roomy = session.allocate(DType::Float32, {2, 5, 4});
  roomy.room = std::exchange(roomy.dims, {2, 3, 4});
  session.copy_positions(there, 1, 0, roomy);
  EXPECT_EQ(static_cast<const float*>(roomy.data)[5 * 4], 12);
  const DeviceTensor back = session.allocate(DType::Float32, {2, 2, 4});
  session.copy_positions(roomy, 1, 1, back);
  const Tensor read = session.to_host({{"t", back}}).at("t");
  for (const int i : {0, 7}) EXPECT_EQ(read.as<float>()[i], 4 + i);
  for (const int i : {8, 15}) EXPECT_EQ(read.as<float>()[i], 8 + i);
}

}  // namespace
}  // namespace redfuser::device_tests
