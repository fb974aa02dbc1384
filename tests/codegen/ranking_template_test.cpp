// Rankings of rows by themselves: src/device/ranking/ranking_rows.cuh with functors written by
// hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/ranking/ranking_rows.cuh"};

// What the functors share: rows of `length` floats in groups of four, of which the positions of the
// kCount largest are written.
constexpr const char* kRows = R"(
constexpr int kCount = 5;
struct Rows {
  static constexpr bool kTransposes = false, kRegisters = false, kMapsBack = false;
  static constexpr int kWidth = 4;
  using Lists = ::Lists;
  struct Row {
    long long number, begin;
    int extent;
    const float* in;
  };
  struct Kept {
    unsigned k[kWidth];
  };
  struct Words {};
  const float* x;
  float* y;
  long long* places;
  long long length;
  __device__ Row row_of(long long number, long long begin, int extent) const {
    return {number, begin, extent, x + number * length + begin};
  }
  template <bool Vector>
  __device__ int shift(const Row& row, int free) const {
    return Vector ? 0 : misalignment<kWidth>(row.in, free);
  }
  template <bool Vector>
  __device__ void keep(Kept& kept, bool, const Row& row, int, int first) const {
    load_words<float, kWidth, Vector, true>(kept.k, row.in + first, -first, row.extent - first);
  }
  template <bool Vector, Reads Set>
  __device__ void fetch(Words&, const Row&, int, int) const {}
  __device__ unsigned key(List<0>, const Kept& kept, const Words&, const Row&, int, int v) const {
    return rank_key<true>(pick<float>(kept.k, v));
  }
};
)";

// The list alone.
constexpr const char* kTopK = R"(
struct Form : Rows {
  static constexpr int kPhases = 0;
  struct State {};
  struct Running {};
  struct Tail {
    const Lists& lists;
  };
  static __device__ State identity() { return {}; }
  __device__ Tail finish(const State&, const Row&, const Lists& lists) const { return {lists}; }
  template <int Lanes>
  __device__ void write_rows(const Row& row, const Tail& tail, int lane) const {
    for (int i = lane; i < kCount; i += Lanes) {
      places[row.number * kCount + i] = position_of(tail.lists.place(List<0>{}, i));
    }
  }
};
)";

// The list, and the largest elements' shares of Σ x.
constexpr const char* kShares = R"(
struct Form : Rows {
  static constexpr int kPhases = 1;
  struct State {
    double sum;
  };
  struct Running {
    State state, part;
  };
  struct Tail {
    const Lists& lists;
    float sum;
  };
  static __device__ State identity() { return {0}; }
  __device__ State merge(const State& a, const State& b) const { return {a.sum + b.sum}; }
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
  __device__ Tail finish(const State& s, const Row&, const Lists& lists) const {
    return {lists, static_cast<float>(s.sum)};
  }
  template <int Lanes>
  __device__ void write_rows(const Row& row, const Tail& tail, int lane) const {
    for (int i = lane; i < kCount; i += Lanes) {
      const unsigned place = tail.lists.place(List<0>{}, i);
      y[row.number * kCount + i] =
          place == kNowhere ? 0 : x[row.number * length + position_of(place)] / tail.sum;
    }
  }
};
)";

struct Loop {
  const char* name;
  int lanes, threads, chunks;
  const char *whole, *part, *lists, *memory;
};

constexpr Loop kLoops[] = {
    {"lanes", 8, 128, 2, "true", "Row", "WarpLists<WarpList<unsigned, 5>>",
     "places_of[threadIdx.x / Config::kLanes]"},
    {"warp", 32, 128, 4, "true", "Row", "WarpLists<WarpList<unsigned, 5>>",
     "places_of[threadIdx.x / Config::kLanes]"},
    {"block", 256, 256, 2, "false", "Row", "BlockLists<BlockRanking<unsigned, 5, 256, 8, 1024>>",
     "list_smem"},
    {"segment", 256, 256, 2, "false", "Segment",
     "BlockLists<BlockRanking<unsigned, 5, 256, 8, 1024>>", "list_smem"},
};

std::string kernel(const Loop& loop, const char* form) {
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Config {{\n"
             "  static constexpr int kLanes = {}, kThreads = {}, kChunks = {}, kCluster = 1;\n"
             "  static constexpr bool kWhole = {}, kShared = false, kFull = false;\n"
             "  static constexpr bool kVectors = true;\n"
             "  static constexpr RowPart kPart = RowPart::{};\n}};\nusing Lists = {};\n",
             loop.lanes, loop.threads, loop.chunks, loop.whole, loop.part, loop.lists) +
         kRows + form +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__({}, 1) loop(const float* x, float* "
             "y,\n"
             "    long long* places, long long rows, long long length,\n"
             "    unsigned char* list, Form::State* states, unsigned* counter) {{\n"
             "  __shared__ Form::State slots[Config::kThreads / 32];\n"
             "  __shared__ unsigned places_of[Config::kThreads / Config::kLanes][kCount];\n"
             "  const RowMemory<Form::State, void> memory{{slots, nullptr, nullptr}};\n"
             "  const Form form{{{{x, y, places, length}}}};\n"
             "  unsigned char* const entries[] = {{list}};\n"
             "  rank_rows<Config>(form, memory, Lists({}), rows, length, length / 2 + 1, entries,\n"
             "                    states, counter,\n"
             "                    length % 4 == 0 && aligned(x));\n}}\n",
             loop.threads, loop.memory);
}

class RankingTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(RankingTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Loop& loop : kLoops) {
    for (const char* form : {kTopK, kShares}) {
      expect_in_registers(kernel(loop, form), GetParam().architecture, loop.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, RankingTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
