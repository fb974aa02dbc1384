// The main loop of row kernels by itself: src/device/row_fold.cuh with functors written by hand.
#include <array>

#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/row_fold.cuh"};

// What the functors share: rows of `length` floats from x to y, in groups of four.
constexpr const char* kRows = R"(
struct Rows {
  static constexpr bool kTransposes = false, kRegisters = false;
  static constexpr int kWidth = 4;
  struct Row {
    long long begin, number;
    int extent;
    const float* in;
  };
  struct Kept {
    unsigned k[4];
  };
  struct Words {};
  struct Values {
    float y[kWidth];
  };
  const float* x;
  float* y;
  long long length;
  __device__ Row row_of(long long number, long long begin, int extent) const {
    return {begin, number, extent, x + number * length + begin};
  }
  template <bool Vector>
  __device__ int shift(const Row& row, int free) const {
    return Vector ? 0 : misalignment<kWidth>(row.in, free);
  }
  template <bool Vector>
  __device__ void keep(Kept& kept, bool, const Row& row, int, int first) const {
    load_words<float, 4, Vector, true>(kept.k, row.in + first, -first, row.extent - first);
  }
  template <bool Vector, Reads Set>
  __device__ void fetch(Words&, const Row&, int, int) const {}
  template <bool Vector>
  __device__ void put(const Values& values, const Row& row, int first) const {
    store_words<kWidth, Vector>(y + row.number * length + row.begin + first, values.y, -first,
                                row.extent - first);
  }
};
)";

// Σ x: one number of state, one result per row.
constexpr const char* kSum = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = false;
  static constexpr int kPhases = 1;
  struct State {
    double sum;
  };
  struct Running {
    State state, part;
  };
  struct Tail {
    float sum;
  };
  static __device__ State identity() { return {0}; }
  template <int High, int Low>
  __device__ State merged(State s) const {
    return {mask_reduce<SumOp, High, Low>(s.sum)};
  }
  __device__ void start(Running&, const State&) const {}
  __device__ void begin(Running& t, const State&, int) const { t.part.sum = 0; }
  __device__ void renew(Running&) const {}
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.sum = Whole ? t.part.sum : s.sum + t.part.sum;
  }
  __device__ void lift(Phase<0>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    t.part.sum += pick<float>(kept.k, v);
  }
  __device__ Tail finish(const State& s, const Row&) const { return {static_cast<float>(s.sum)}; }
  template <int Lanes>
  __device__ void write_rows(const Row& row, const Tail& tail, int lane) const {
    if (lane == 0) y[row.number] = tail.sum;
  }
};
)";

// exp(x - m) / Σ exp(x - m) with the maximum m as reference of the sum.
constexpr const char* kSoftmax = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = true;
  static constexpr int kPhases = 2;
  struct State {
    alignas(8) float most;
    alignas(8) float sum;
  };
  struct Running {
    State state, part;
    float old;
  };
  struct Tail {
    float most, sum;
  };
  static __device__ State identity() { return {-__uint_as_float(0x7f800000u), 0}; }
  static __device__ float moved(float sum, float from, float to) {
    return from == to ? sum : sum * expf(from - to);
  }
  template <int High, int Low>
  __device__ State merged(State s) const {
    const float most = mask_reduce<MaxOp, High, Low>(s.most);
    return {most, mask_reduce<SumOp, High, Low>(moved(s.sum, s.most, most))};
  }
  __device__ void start(Running& t, const State& s) const { t.old = s.most; }
  __device__ void begin(Running& t, const State&, int) const { t.part = identity(); }
  __device__ void renew(Running& t) const { t.old = t.state.most; }
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.most = Whole ? t.part.most : MaxOp::apply(s.most, t.part.most);
  }
  template <bool Whole>
  __device__ void settle(Phase<1>, Running& t, const State& s) const {
    t.state.sum = Whole ? t.part.sum : moved(s.sum, t.old, t.state.most) + t.part.sum;
  }
  __device__ void lift(Phase<0>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    t.part.most = MaxOp::apply(t.part.most, pick<float>(kept.k, v));
  }
  __device__ void lift(Phase<1>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    t.part.sum += expf(pick<float>(kept.k, v) - t.state.most);
  }
  __device__ Tail finish(const State& s, const Row&) const { return {s.most, s.sum}; }
  template <int Lanes>
  __device__ void write_rows(const Row&, const Tail&, int) const {}
  template <bool Vector>
  __device__ void map(Values& values, const Kept& kept, const Words&, const Row&, const Tail& tail,
                      int, int v) const {
    values.y[v] = expf(pick<float>(kept.k, v) - tail.most) / tail.sum;
  }
};
)";

// (x - mean) / sqrt(variance): squares are taken from a tile's mean and moved to the row's.
constexpr const char* kLayerNorm = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = true;
  static constexpr int kPhases = 2;
  struct State {
    alignas(8) float sum;
    alignas(8) float squares;
    alignas(8) int count;
  };
  struct Running {
    State state, part;
    float old, now;
  };
  struct Tail {
    float mean, scale;
  };
  static __device__ State identity() { return {0, 0, 0}; }
  static __device__ float mean(const State& s) {
    return s.count == 0 ? 0 : s.sum / static_cast<float>(s.count);
  }
  static __device__ float moved(const State& s, float from, float to) {
    return s.squares + static_cast<float>(s.count) * (from - to) * (from - to);
  }
  template <int High, int Low>
  __device__ State merged(State s) const {
    State t;
    t.count = mask_reduce<SumOp, High, Low>(s.count);
    t.sum = mask_reduce<SumOp, High, Low>(s.sum);
    t.squares = mask_reduce<SumOp, High, Low>(moved(s, mean(s), mean(t)));
    return t;
  }
  __device__ void start(Running& t, const State& s) const { t.old = mean(s); }
  __device__ void begin(Running& t, const State& s, int added) const {
    t.part = identity();
    t.state.count = s.count + added;
  }
  __device__ void renew(Running& t) const { t.old = t.now; }
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.sum = s.sum + t.part.sum;
    t.now = mean(t.state);
  }
  template <bool Whole>
  __device__ void settle(Phase<1>, Running& t, const State& s) const {
    t.state.squares = (Whole ? 0 : moved(s, t.old, t.now)) + t.part.squares;
  }
  __device__ void lift(Phase<0>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    t.part.sum += pick<float>(kept.k, v);
  }
  __device__ void lift(Phase<1>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    const float d = pick<float>(kept.k, v) - t.now;
    t.part.squares += d * d;
  }
  __device__ Tail finish(const State& s, const Row&) const {
    return {mean(s), rsqrtf(s.squares / static_cast<float>(length) + 1e-5f)};
  }
  template <int Lanes>
  __device__ void write_rows(const Row&, const Tail&, int) const {}
  template <bool Vector>
  __device__ void map(Values& values, const Kept& kept, const Words&, const Row&, const Tail& tail,
                      int, int v) const {
    values.y[v] = (pick<float>(kept.k, v) - tail.mean) * tail.scale;
  }
};
)";

struct Loop {
  const char* name;
  int lanes, threads, chunks, cluster;
  const char *whole, *part;
};

constexpr Loop kLoops[] = {
    {"lanes", 8, 128, 4, 1, "true", "Row"},
    {"warp", 32, 128, 8, 1, "true", "Row"},
    {"block", 256, 256, 4, 1, "true", "Row"},
    {"tiles", 256, 256, 2, 1, "false", "Row"},
    {"cluster", 256, 256, 4, 4, "true", "Row"},
    {"segment", 256, 256, 4, 1, "false", "Segment"},
    {"partials", 256, 256, 4, 1, "false", "Partials"},
    {"finish", 256, 256, 4, 1, "false", "Finish"},
};

std::string kernel(const Loop& loop, const char* form) {
  const bool shares = loop.cluster > 1;
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Config {{\n"
             "  static constexpr int kLanes = {}, kThreads = {}, kChunks = {}, kCluster = {};\n"
             "  static constexpr bool kWhole = {}, kShared = false, kFull = false;\n"
             "  static constexpr bool kVectors = true;\n"
             "  static constexpr RowPart kPart = RowPart::{};\n}};\n",
             loop.lanes, loop.threads, loop.chunks, loop.cluster, loop.whole, loop.part) +
         kRows + form +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__({0}) loop(const float* x, float* y,\n"
             "    long long rows, long long length, Form::State* states, unsigned* counter) {{\n"
             "  __shared__ Form::State slots[Config::kThreads / 32];\n  {1}\n"
             "  const RowMemory<Form::State, {2}> memory{{slots, nullptr, {3}}};\n"
             "  const Form form{{x, y, length}};\n"
             "  fold_rows<Config>(form, memory, rows, length, length / 2 + 1, states, counter,\n"
             "                    length % 4 == 0 && aligned(x) && aligned(y));\n}}\n",
             loop.threads,
             shares ? fmt::format("__shared__ ClusterExchange<Form::State, {}> exchange;",
                                  loop.cluster)
                    : "",
             shares ? fmt::format("ClusterExchange<Form::State, {}>", loop.cluster) : "void",
             shares ? "&exchange" : "nullptr");
}

class RowTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(RowTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Loop& loop : kLoops) {
    if (loop.cluster > 1 && architecture < 90) continue;
    for (const char* form : {kSum, kSoftmax, kLayerNorm}) {
      expect_in_registers(kernel(loop, form), architecture, loop.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, RowTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
