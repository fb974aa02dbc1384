// Runs on the caller's memory and stream: copies, allocations, launches and replays.
#include <set>
#include <thread>

#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

// Caller's memory; the fake GPU's is the host's.
class Block {
 public:
  explicit Block(int64_t n, int64_t shift = 0)
      : bytes_(static_cast<char*>(
            std::aligned_alloc(256, static_cast<size_t>(n + 63) / 64 * 256 + 512))) {
    tensor.dtype = DType::Float32;
    tensor.dims = {n};
    tensor.data = bytes_ + shift;
  }
  ~Block() { std::free(bytes_); }
  Block(const Block&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(tensor.data); }

  DeviceTensor tensor;

 private:
  char* bytes_;
};

class Enqueue : public FakeGpu {
 protected:
  Session session_for(const std::string& graph) { return Session(compile(model(graph)), options); }
  // The two first arguments of the only launch since the last call, in either order.
  void expect_launch(uint64_t a, uint64_t b) {
    ASSERT_EQ(gpu->launches.size(), 1u);
    std::vector<uint64_t> got = gpu->launches[0].arguments;
    got.resize(2);
    EXPECT_TRUE((got == std::vector{a, b}) || (got == std::vector{b, a}));
    gpu->launches.clear();
  }
  int copies() const { return gpu->to_device + gpu->to_host + gpu->on_device; }
};

TEST_F(Enqueue, ReadsAndWritesInPlace) {
  Session session = session_for(kExp);
  const Block x(100), y(100);
  const NamedDeviceTensors outputs = session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  EXPECT_EQ(outputs.at("y").data, y.tensor.data);
  expect_launch(x.address(), y.address());
  EXPECT_EQ(copies(), 0);
}

TEST_F(Enqueue, WritesToMemoryOfTheSessionsGpuAndOrdersStreams) {
  Session session = session_for(kExp);
  const Block x(100);
  const DeviceTensor y = session.allocate(DType::Float32, {100});
  EXPECT_FALSE(y.on_host);
  session.enqueue({{"x", x.tensor}}, {{"y", y}}, nullptr);
  expect_launch(x.address(), reinterpret_cast<uint64_t>(y.data));
  int other = 0;
  session.order(nullptr, &other);
  ASSERT_EQ(gpu->stream_waits.size(), 1u);
  EXPECT_EQ(gpu->stream_waits[0].first, static_cast<void*>(&other));
  EXPECT_EQ(gpu->stream_waits[0].second, gpu->operations);
  EXPECT_NE(session.stream(), nullptr);
}

TEST_F(Enqueue, OutputsThatAreNotGivenAreTheSessions) {
  Session session = session_for(kExp);
  const Block x(100);
  const DeviceTensor y = session.enqueue({{"x", x.tensor}}, {}, nullptr).at("y");
  EXPECT_EQ(y.dims, Dims{100});
  EXPECT_FALSE(y.on_host);
  expect_launch(x.address(), reinterpret_cast<uint64_t>(y.data));
  expect_mentions(error_of([&] {
                    session.enqueue({{"x", y}}, {}, nullptr);
                  }),
                  "lies in the session's own memory");
}

TEST_F(Enqueue, UsesTheCallersStream) {
  Session session = session_for(kExp), other = session_for(kExp);
  const Block x(100), y(100);
  session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  void* const stream = gpu->launches[0].stream;
  gpu->launches.clear();
  other.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, stream);
  EXPECT_EQ(gpu->launches[0].stream, stream);
}

TEST_F(Enqueue, TheSameAddressesReplayAGraph) {
  Session session = session_for(kExp);
  const Block x(100), y(100);
  for (int run = 0; run < 4; ++run) {
    session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  }
  EXPECT_EQ(gpu->launches.size(), 1u);
  EXPECT_EQ(gpu->recorded, 1);
  EXPECT_EQ(gpu->replays, 3);
}

TEST_F(Enqueue, OtherAddressesChangeTheGraph) {
  Session session = session_for(kExp);
  const Block x(100), y(100), z(100);
  for (const Block* out : {&y, &y, &z, &y}) {
    session.enqueue({{"x", x.tensor}}, {{"y", out->tensor}}, nullptr);
  }
  EXPECT_EQ(gpu->graphs, 1);
  EXPECT_EQ(gpu->changed_nodes, 2);
  ASSERT_EQ(gpu->replayed.size(), 3u);
  gpu->launches = {gpu->replayed[1]};
  expect_launch(x.address(), z.address());
  gpu->launches = {gpu->replayed[2]};
  expect_launch(x.address(), y.address());
}

// A step waits for one that reads the memory that it writes.
class Overlap : public Enqueue {
 protected:
  void run(const Block& y) {
    session.enqueue({{"x", x.tensor}, {"z", z.tensor}}, {{"y", y.tensor}, {"w", w.tensor}},
                    nullptr);
  }
  Session session = session_for(
      "g (float[n] x, float[n] z) => (float[n] y, float[n] w) {"
      " a = Constant<value = int64 {0}>() w = CumSum(z, a) y = Exp(x) }");
  const Block x{100}, z{100}, w{100}, other{100};
};

TEST_F(Overlap, ThatIsNewIsAnotherGraph) {
  for (const Block* y : {&other, &other, &z, &z, &other}) run(*y);
  EXPECT_EQ(gpu->awaits, (std::vector<size_t>{0, 0, 2, 0, 1, 2, 0, 0, 2}));
  EXPECT_EQ(gpu->graphs, 3);
  EXPECT_EQ(gpu->changed_nodes, 0);
}

// The last graph is replayed for the runs that it serves; the others are enqueued.
TEST_F(Overlap, IsNotRecordedForever) {
  for (int i = 0; i < 10; ++i) run(i % 2 == 0 ? other : z);
  EXPECT_EQ(gpu->graphs, 3);
  EXPECT_EQ(gpu->replays, 6);
  EXPECT_EQ(gpu->launches.size(), 2u * 4);
}

// Steps that share no bytes are beside each other in the graph; others wait.
TEST_F(Enqueue, AGraphHasTheEdgesOfTheData) {
  Session session = session_for(
      "g (float[n,8] x, float[m,9] w) => (float[n,8] y, float[m,9] z, float[1,9] s) { "
      "y = Softmax<axis = -1>(x) z = Softmax<axis = -1>(w) k = Constant<value = int64[1] {0}>() "
      "s = ReduceMax(z, k) }");
  NamedTensors inputs;
  inputs["x"] = Tensor(DType::Float32, {4, 8});
  inputs["w"] = Tensor(DType::Float32, {6, 9});
  for (int run = 0; run < 3; ++run) session.run(inputs);
  EXPECT_EQ(gpu->recorded, 3);
  EXPECT_EQ(gpu->awaits, (std::vector<size_t>{0, 0, 1, 3}));
}

// A product behind one kernel, whose weights it can read before that has ended.
TEST_F(Enqueue, AProductStartsEarlyBehindOneKernel) {
  std::string weights;
  for (int i = 0; i < 128; ++i) weights += (i == 0 ? "" : ", ") + std::to_string(i % 7);
  const std::string head =
      "g (float[1,8] x, float[1,16] z, float[8,16] v) => (float[1,16] y) <"
      "float[8,16] w = {" +
      weights + "}> { a = Constant<value = int64 {1}>() s = CumSum(x, a) ";
  const struct {
    const char* body;
    std::vector<int> early;
  } graphs[] = {
      {"y = MatMul(s, w) }", {1}},
      {"y = MatMul(s, v) }", {1}},
      {"t = CumSum(z, a) p = MatMul(s, w) y = Add(p, t) }", {}},
  };
  for (const auto& graph : graphs) {
    gpu->recorded = 0;
    gpu->early.clear();
    Session session = session_for(head + graph.body);
    NamedTensors inputs;
    inputs["x"] = Tensor(DType::Float32, {1, 8});
    inputs["z"] = Tensor(DType::Float32, {1, 16});
    inputs["v"] = Tensor(DType::Float32, {8, 16});
    for (int run = 0; run < 3; ++run) session.run(inputs);
    EXPECT_GE(gpu->recorded, 2) << graph.body;
    EXPECT_EQ(gpu->early, graph.early) << graph.body;
  }
}

// Two products that could be a chain are one step, which is the first one, also where they run
// apart.
TEST_F(Enqueue, AKernelStartsEarlyBehindAnotherOfItsStep) {
  Session session = session_for(
      "g (float16[1,768] x, float16[768,3072] w, float16[3072,768] d) => "
      "(float16[1,768] y) { p = MatMul(x, w) r = Relu(p) y = MatMul(r, d) }");
  NamedTensors inputs;
  inputs["x"] = Tensor(DType::Float16, {1, 768});
  inputs["w"] = Tensor(DType::Float16, {768, 3072});
  inputs["d"] = Tensor(DType::Float16, {3072, 768});
  for (int run = 0; run < 3; ++run) session.run(inputs);
  EXPECT_EQ(gpu->recorded, 2);
  EXPECT_EQ(gpu->early, std::vector<int>{1});
}

// A multiprocessor that divides its memory anew has to be idle. More blocks than half of it has
// room for would wait for each other.
TEST_F(Enqueue, LaunchesThatOverlapPreferOneDivisionOfMemory) {
  const auto preferred = [&](int rows) {
    const std::string m = std::to_string(rows);
    Session session = session_for("g (float16[" + m +
                                  ",768] x, float16[768,3072] w, float16[3072,"
                                  "768] d) => (float16[" +
                                  m +
                                  ",3072] y) "
                                  "{ p = Softmax(x) q = MatMul(p, w) r = MatMul(q, d) "
                                  "y = MatMul(r, w) }");
    gpu->carveouts.clear();
    session.run({{"x", Tensor(DType::Float16, {rows, 768})},
                 {"w", Tensor(DType::Float16, {768, 3072})},
                 {"d", Tensor(DType::Float16, {3072, 768})}});
    return gpu->carveouts;
  };
  EXPECT_GE(preferred(1).size(), 2u);
  EXPECT_EQ(std::set<unsigned>(gpu->carveouts.begin(), gpu->carveouts.end()), std::set{50u});
  EXPECT_TRUE(preferred(1 << 16).empty());
  gpu->driver_version = 12070;
  EXPECT_TRUE(preferred(1).empty());
}

// The early start is an edge's, which a changed kernel leaves as it is.
TEST_F(Enqueue, KernelsThatStartEarlyAreChanged) {
  std::string weights = "0";
  for (int i = 1; i < 128; ++i) weights += ", " + std::to_string(i % 7);
  Session session =
      session_for("g (float[1,8] x) => (float[1,16] y) <float[8,16] w = {" + weights +
                  "}> { a = Constant<value = int64 {1}>() s = CumSum(x, a) y = MatMul(s, w) }");
  Block x(8), y(16), z(16);
  x.tensor.dims = {1, 8};
  y.tensor.dims = z.tensor.dims = {1, 16};
  for (const Block* out : {&y, &y, &z, &y}) {
    session.enqueue({{"x", x.tensor}}, {{"y", out->tensor}}, nullptr);
  }
  EXPECT_EQ(gpu->early.size(), 1u);
  EXPECT_EQ(gpu->graphs, 1);
  EXPECT_EQ(gpu->graph_updates, 0);
  EXPECT_EQ(gpu->changed_nodes, 2);
}

// The sizes of a growing state: a run is enqueued, the next one recorded, and others change that.
TEST_F(Enqueue, RunsThatGrowChangeOneGraph) {
  Session session = session_for(kExp);
  for (int n = 1; n <= 4; ++n) session.run({{"x", vector_of(n)}});
  EXPECT_EQ(gpu->launches.size(), 4u);
  for (int n = 5; n <= 10; ++n) session.run({{"x", vector_of(n)}});
  session.run({{"x", vector_of(7)}});
  EXPECT_EQ(gpu->launches.size(), 4u);
  EXPECT_EQ(gpu->graphs, 1);
  EXPECT_EQ(gpu->changed_nodes, 6);
  EXPECT_EQ(gpu->replays, 7);
  session.run({{"x", vector_of(17)}});  // of the next length class
  EXPECT_EQ(gpu->launches.size(), 5u);
}

// A driver that refuses gets the calls anew, which change the same graph.
TEST_F(Enqueue, KernelsThatCannotBeChangedAreRecordedAnew) {
  gpu->changes_nodes = false;
  Session session = session_for(kExp);
  for (int n = 1; n <= 10; ++n) session.run({{"x", vector_of(n)}});
  EXPECT_EQ(gpu->launches.size(), 4u);
  EXPECT_EQ(gpu->graphs, 1);
  EXPECT_EQ(gpu->graph_updates, 5);
}

TEST_F(Enqueue, ALostCaptureIsNoLostRun) {
  gpu->lost_captures = 2;
  Session session = session_for(kExp);
  const Block x(100), y(100);
  for (int run = 0; run < 5; ++run) {
    session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  }
  EXPECT_EQ(gpu->launches.size(), 3u);
  EXPECT_EQ(gpu->recorded, 1);
  EXPECT_EQ(gpu->replays, 2);
}

TEST_F(Enqueue, AllocatesNothingAfterTheFirstRunOfAShape) {
  Session session = session_for(kExp);
  session.run({{"x", vector_of(1000)}});
  const int64_t before = session.allocations();
  const int device = gpu->allocations, pinned = gpu->pinned;
  for (int run = 0; run < 5; ++run) {
    session.run({{"x", vector_of(1000)}});
    session.run({{"x", vector_of(run + 1)}});
  }
  EXPECT_EQ(session.allocations(), before);
  EXPECT_EQ(gpu->allocations, device);
  EXPECT_EQ(gpu->pinned, pinned);
}

TEST_F(Enqueue, KeepsSoManyGraphs) {
  options.kept_shapes = 3;
  Session session = session_for(kExp);
  session.run({{"x", vector_of(16 << 10)}});
  for (int n = 16; n <= 16 << 9; n *= 2) {
    for (int run = 0; run < 3; ++run) session.run({{"x", vector_of(n)}});
  }
  EXPECT_EQ(gpu->graphs, 10);
  EXPECT_EQ(gpu->live_graphs, 3);
}

TEST_F(Enqueue, MisalignedMemoryIsCopied) {
  Session session = session_for(kExp);
  const Block x(100, 4), y(100, 8);
  session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  EXPECT_EQ(gpu->on_device, 2);
  EXPECT_EQ(gpu->launches.size(), 1u);
}

TEST_F(Enqueue, HostMemoryIsCopied) {
  Session session = session_for(kExp);
  Block x(100), y(100);
  x.tensor.on_host = y.tensor.on_host = true;
  session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}}, nullptr);
  EXPECT_EQ(gpu->to_device, 1);
  EXPECT_EQ(gpu->to_host, 1);
}

TEST_F(Enqueue, AnElementwiseOutputMayLieOnItsInput) {
  Session session = session_for(kExp);
  const Block x(100);
  session.enqueue({{"x", x.tensor}}, {{"y", x.tensor}}, nullptr);
  expect_launch(x.address(), x.address());
  EXPECT_EQ(copies(), 0);
}

TEST_F(Enqueue, AnOutputThatWouldSpoilItsInputIsCopiedAtTheEnd) {
  const char* graphs[] = {
      "g (float[n] x) => (float[n] y) { a = Constant<value = int64[1] {0}>() m = ReduceMax(x, a)"
      "  e = Exp(x) b = Sub(e, m) z = ReduceSum(b, a) y = Add(e, z) }",
      "g (float[n] x) => (float[n] y) { s = Constant<value = int64[1] {-1}>()"
      "  e = Constant<value = int64[1] {-9223372036854775807}>() a = Constant<value = int64[1] "
      "{0}>()"
      "  r = Slice(x, s, e, a, s) y = Exp(r) }",
  };
  for (const char* graph : graphs) {
    Session session = session_for(graph);
    const Block x(100);
    session.enqueue({{"x", x.tensor}}, {{"y", x.tensor}}, nullptr);
    EXPECT_EQ(gpu->on_device, 1) << graph;
    gpu->on_device = 0;
  }
}

TEST_F(Enqueue, AnOverlapThatIsNotExactIsCopied) {
  Session session = session_for(kExp);
  Block x(100);
  DeviceTensor shifted = x.tensor;
  shifted.data = static_cast<char*>(shifted.data) + 16;
  session.enqueue({{"x", x.tensor}}, {{"y", shifted}}, nullptr);
  EXPECT_EQ(gpu->on_device, 1);
}

TEST_F(Enqueue, OutputsThatAreInputsAreCopied) {
  Session session =
      session_for("g (float[n] x) => (float[n] y, float[n] z) { y = Identity(x) z = Exp(x) }");
  const Block x(100), y(100), z(100);
  session.enqueue({{"x", x.tensor}}, {{"y", y.tensor}, {"z", z.tensor}}, nullptr);
  EXPECT_EQ(gpu->on_device, 1);
  expect_launch(x.address(), z.address());
}

TEST_F(Enqueue, ChecksWhatItIsGiven) {
  Session session = session_for(kExp);
  const Block x(100), y(99);
  DeviceTensor none = x.tensor;
  none.data = nullptr;
  const NamedDeviceTensors good = {{"x", x.tensor}};
  expect_mentions(error_of([&] {
                    session.enqueue(good, {{"y", y.tensor}}, nullptr);
                  }),
                  "given memory for float32[99], but it is float32[100]");
  expect_mentions(error_of([&] {
                    session.enqueue(good, {{"q", y.tensor}}, nullptr);
                  }),
                  "no output \"q\"");
  expect_mentions(error_of([&] { session.enqueue({{"x", none}}, {}, nullptr); }), "no memory");
  expect_mentions(error_of([&] { session.enqueue({}, {}, nullptr); }), "\"x\" is missing");
  EXPECT_TRUE(gpu->launches.empty());
  SessionOptions cpu;
  Session on_cpu(compile(model(kExp)), cpu);
  expect_mentions(error_of([&] { on_cpu.enqueue(good, {}, nullptr); }), "needs a session on cuda");
}

TEST_F(Enqueue, TellsOutputSizes) {
  const Session session =
      session_for("g (float[n, 3] x) => (float[3, n] y) { y = Transpose<perm = [1, 0]>(x) }");
  EXPECT_EQ(session.output_dims({{"x", {5, 3}}}), (NamedDims{{"y", {3, 5}}}));
  EXPECT_THROW(session.output_dims({{"x", {5, 4}}}), UserError);
}

TEST_F(Enqueue, ManyThreadsShareAProgram) {
  const Program program = compile(model(kExp));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      Session session(program, options);
      for (int run = 0; run < 20; ++run) session.run({{"x", vector_of(100 + thread)}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gpu->launches.size(), 8u);
  EXPECT_EQ(gpu->replays, 8 * 19);
  EXPECT_EQ(gpu->live_graphs, 0);
}

}  // namespace
}  // namespace redfuser::device_tests
