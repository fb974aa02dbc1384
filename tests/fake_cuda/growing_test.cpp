// Runs that grow share memory and a graph: each launches what a session of its own would.
#include <algorithm>
#include <random>
#include <utility>

#include "fake_cuda/device_harness.h"
#include "redfuser/dlpack.h"
#include "redfuser/error.h"
#include "redfuser/state.h"
#include "runtime/program/sizes/growing_symbols.h"
#include "support/test_paths.h"

namespace redfuser::device_tests {
namespace {

// A launch without the addresses, which differ from session to session.
struct Shown {
  size_t kernel;
  std::vector<unsigned> grid;
  std::vector<uint64_t> sizes;
  bool operator==(const Shown&) const = default;
};

Shown shown(const FakeCuda::Launch& launch) {
  constexpr uint64_t kLowestAddress = uint64_t{1} << 32;
  Shown result{launch.kernel, {std::begin(launch.grid), std::end(launch.grid)}, {}};
  for (const uint64_t argument : launch.arguments) {
    if (argument < kLowestAddress) result.sizes.push_back(argument);
  }
  return result;
}

class Growing : public FakeGpu {
 protected:
  // Of a run, by graph or not, and the sizes of its outputs.
  std::pair<std::vector<Shown>, NamedDims> run(Session& session, const NamedTensors& inputs) {
    NamedDims dims;
    const auto launches = launches_of([&] {
      for (const auto& [name, tensor] : session.run(inputs)) dims[name] = tensor.dims();
    });
    return {launches, dims};
  }

  template <typename Body>
  std::vector<Shown> launches_of(const Body& body) {
    gpu->launches.clear();
    gpu->replayed.clear();
    body();
    std::vector<Shown> result;
    for (const auto* launches : {&gpu->launches, &gpu->replayed}) {
      for (const FakeCuda::Launch& launch : *launches) result.push_back(shown(launch));
    }
    return result;
  }

  // Inputs of the model where its symbols have these sizes; others are 1.
  static NamedTensors inputs_of(const Model& model, const std::map<std::string, int64_t>& sizes) {
    NamedTensors inputs;
    for (const ValueInfo& info : model.inputs()) {
      Dims dims;
      for (const auto& dim : info.dims) {
        const auto size = sizes.find(dim.symbol);
        dims.push_back(dim.size >= 0 ? dim.size : size == sizes.end() ? 1 : size->second);
      }
      Tensor tensor(info.dtype, dims);
      std::fill_n(tensor.as<char>(), tensor.bytes(), '\0');
      inputs[info.name] = tensor;
    }
    return inputs;
  }

  // `sizes_at` gives the sizes of a run by its length.
  template <typename Sizes>
  void expect_equal_runs(const Model& file, const std::vector<int64_t>& lengths,
                         const Sizes& sizes_at) {
    const Program program = compile(file);
    Session growing(program, options);
    int changed = 0;
    for (const int64_t length : lengths) {
      const NamedTensors inputs = inputs_of(file, sizes_at(length));
      gpu->changed_nodes = gpu->graph_updates = 0;
      const auto got = run(growing, inputs);
      changed += gpu->changed_nodes + gpu->graph_updates;
      Session alone(program, options);
      const auto wanted = run(alone, inputs);
      EXPECT_EQ(got.first, wanted.first) << "length " << length;
      EXPECT_EQ(got.second, wanted.second) << "length " << length;
    }
    EXPECT_GT(changed, 0);
    EXPECT_TRUE(gpu->refusals.empty());
  }

  // A run in which every state of the inputs is in memory with room and gets one position.
  static void append(Session& session, const States& states, const NamedTensors& inputs,
                     int64_t room) {
    NamedDeviceTensors all, outputs;
    for (const auto& [name, tensor] : inputs) all[name] = dlpack::on_host(tensor);
    for (const StatePair& pair : states.pairs()) {
      DeviceTensor& past = all.at(pair.past);
      const auto axis = static_cast<size_t>(*pair.axis);
      Dims dims = past.dims;
      dims[axis] = room;
      DeviceTensor memory = session.allocate(past.dtype, dims);
      memory.room = std::exchange(memory.dims, past.dims);
      if (past.dims[axis] > 0) past = memory;
      ++memory.dims[axis];
      outputs[pair.present] = memory;
    }
    session.enqueue(all, outputs);
    session.synchronize();
  }

  // Steps of one with a leap now and then, as drafts are accepted and rejected.
  static std::vector<int64_t> lengths(int seed, int64_t first) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<int64_t> result = {first, first + 1, first + 2, first + 3};
    for (int run = 0; run < 60; ++run) {
      const bool leaps = random() % 5 == 0;
      const int64_t more = leaps ? static_cast<int64_t>(random() % 40) - 12 : 1;
      result.push_back(std::max<int64_t>(result.back() + more, 8));
    }
    return result;
  }
};

TEST_F(Growing, ADecoder) {
  const Model file = Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx");
  for (const int seed : {1, 2}) {
    expect_equal_runs(file, lengths(seed, 5), [](int64_t past) {
      return std::map<std::string, int64_t>{{"past_sequence_length", past}};
    });
  }
}

class GrowingStates : public Growing, public ::testing::WithParamInterface<bool> {};

// The next token's calls are prepared while this one's run, at once or by prepare(); after a leap
// they are other ones.
TEST_P(GrowingStates, LaunchWhatASessionOfTheirOwnWould) {
  const bool prepares = GetParam();
  const Model file = Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx");
  const Program program = compile(file);
  Session growing(program, options);
  States states(growing, file);
  int64_t room = 0;
  for (int token = 0; token < 70; ++token) {
    if (token % 16 == 15) states.rewind(3);
    const int64_t past = states.length();
    room = std::max(room, runtime::greatest_length(past + 1));
    NamedTensors inputs = inputs_of(file, {{"past_sequence_length", past}});
    Session alone(program, options);
    const auto wanted = launches_of([&] { append(alone, states, inputs, room); });
    std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("past"); });
    if (prepares) states.prepare();
    const int changed = gpu->changed_nodes;
    EXPECT_TRUE(launches_of([&] { states.run(inputs); }) == wanted) << "length " << past;
    if (token >= 10 && token < 15) {
      EXPECT_GT(changed, 0);
      EXPECT_EQ(gpu->changed_at_replay, changed) << "length " << past;
      EXPECT_EQ(gpu->changed_nodes > changed, !prepares) << "length " << past;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Prepared, GrowingStates, ::testing::Bool());

// The first token in a state's memory is planned for those after it, and the second is recorded.
TEST_F(Growing, TheThirdTokenReplaysAGraph) {
  const Model file = Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx");
  Session session(compile(file), options);
  States states(session, file);
  const auto run = [&](int64_t tokens) {
    NamedTensors inputs =
        inputs_of(file, {{"past_sequence_length", states.length()}, {"sequence_length", tokens}});
    std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("past"); });
    states.run(inputs);
  };
  run(20);
  run(1);
  run(1);
  const int graphs = gpu->graphs, replays = gpu->replays;
  for (int token = 1; token <= 8; ++token) {
    run(1);
    EXPECT_EQ(gpu->replays, replays + token);
  }
  EXPECT_EQ(gpu->graphs, graphs);
}

TEST_F(Growing, ReductionsAndProductsOverTheLength) {
  const char* const graphs[] = {
      "g (float[b, n] x) => (float[b, n] y) { y = Softmax<axis = -1>(x) }",
      "g (float[n, 64] x) => (float[n, 64] y) { y = Softmax<axis = 0>(x) }",
      "g (float16[4, n] x, float16[n, 64] w) => (float16[4, 64] y) { y = MatMul(x, w) }",
      "g (float16[n, 128] x, float16[n, 128] z) => (float16[n, n] y, float16[n, 128] s) {"
      "  t = Transpose(z)  y = MatMul(x, t)  p = Softmax(y)  s = MatMul(p, z) }",
      "g (float[2, n] x) => (float[2, 8] y, int64[2, 8] i) {"
      "  k = Constant<value = int64[1] {8}>()  y, i = TopK(x, k) }",
      "g (float[n] x, float[n] z) => (float[m] y) { y = Concat<axis = 0>(x, z) }",
  };
  for (const char* graph : graphs) {
    expect_equal_runs(model(graph), lengths(3, 9), [](int64_t n) {
      return std::map<std::string, int64_t>{{"n", n}};
    });
  }
}

// The memory of the greatest run of a class has room for each run.
TEST_F(Growing, AllocatesOncePerLengthClass) {
  Session session(
      compile(model("g (float[n, 64] x) => (float[n, n] y) { t = Transpose(x) y = MatMul(x, t) }")),
      options);
  const auto run = [&](int64_t n) { session.run({{"x", Tensor(DType::Float32, {n, 64})}}); };
  for (int64_t n = 17; n <= 21; ++n) run(n);
  const int before = gpu->allocations;
  for (int64_t n = 22; n <= 32; ++n) run(n);
  EXPECT_EQ(gpu->allocations, before);
}

// Where the greatest run of the class does not fit, each run has memory of its own.
TEST_F(Growing, StaysBelowTheMemoryLimit) {
  const Program program = compile(model("g (float[n] x) => (float[n] y) { y = Exp(x) }"));
  options.memory_limit = 2 * 4 * 1100 + 512;
  Session session(program, options);
  for (int64_t n = 1025; n <= 1040; ++n) session.run({{"x", vector_of(n)}});
  EXPECT_EQ(gpu->changed_nodes, 0);
  EXPECT_THROW(session.run({{"x", vector_of(2048)}}), UserError);
}

}  // namespace
}  // namespace redfuser::device_tests
