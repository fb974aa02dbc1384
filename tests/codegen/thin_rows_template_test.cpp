// Thin products of rows that every block makes by themselves: src/device/product/thin_rows.cuh with
// a functor written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/thin_rows.cuh"};

// x / sqrt(Σ x²) of rows of `length` floats in groups of four, as lines `pitch` apart.
constexpr const char* kUnitRows = R"(
struct Form {
  static constexpr bool kTransposes = false, kRegisters = true, kMapsBack = true;
  static constexpr int kWidth = 4, kPhases = 1;
  struct State {
    alignas(8) float squares;
  };
  struct Row {
    long long number, begin;
    int extent;
    const float* in;
  };
  struct Kept {
    unsigned k[kWidth];
  };
  struct Words {};
  struct Running {
    State state, part;
  };
  struct Tail {
    float inverse;
  };
  struct Values {
    float y[kWidth];
  };
  const float* x;
  float* lines;
  long long length, pitch;
  __device__ Row row_of(long long number, long long begin, int extent) const {
    return {number, begin, extent, x + number * length + begin};
  }
  template <bool Vector>
  __device__ int shift(const Row&, int) const {
    return 0;
  }
  static __device__ State identity() { return {0}; }
  template <int High, int Low>
  __device__ State merged(State s) const {
    return {mask_reduce<SumOp, High, Low>(s.squares)};
  }
  __device__ State merge(const State& a, const State& b) const { return {a.squares + b.squares}; }
  __device__ void start(Running&, const State&) const {}
  __device__ void begin(Running& t, const State&, int) const { t.part = identity(); }
  __device__ void renew(Running&) const {}
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.squares = Whole ? t.part.squares : s.squares + t.part.squares;
  }
  template <bool Vector>
  __device__ void keep(Kept& kept, bool, const Row& row, int, int first) const {
    load_words<float, kWidth, Vector, false>(kept.k, row.in + first, -first, row.extent - first);
  }
  template <bool Vector, Reads Set>
  __device__ void fetch(Words&, const Row&, int, int) const {}
  __device__ void lift(Phase<0>, Running& t, const Kept& kept, const Words&, const Row&, int,
                       int v) const {
    const float value = pick<float>(kept.k, v);
    t.part.squares += value * value;
  }
  __device__ Tail finish(const State& s, const Row&) const { return {1 / sqrtf(s.squares)}; }
  template <int Lanes>
  __device__ void write_rows(const Row&, const Tail&, int) const {}
  template <bool Vector>
  __device__ void map(Values& values, const Kept& kept, const Words&, const Row&, const Tail& tail,
                      int, int v) const {
    values.y[v] = pick<float>(kept.k, v) * tail.inverse;
  }
  template <bool Vector>
  __device__ void put(const Values& values, const Row& row, int first) const {
    store_words<kWidth, Vector>(lines + row.number * pitch + row.begin + first, values.y, -first,
                                row.extent - first);
  }
};
)";

struct Loop {
  const char* name;
  int lanes;  // of a row
  bool whole;
  int lines;  // at most
};

constexpr Loop kLoops[] = {
    {"a_row_in_all_threads", 128, true, 1},
    {"a_row_in_tiles", 128, false, 1},
    {"rows_in_warps", 32, true, 4},
    {"rows_in_tiles_of_warps", 32, false, 8},
};

std::string text(const Loop& loop) {
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Config {{\n"
             "  static constexpr int kLanes = {}, kThreads = 128, kChunks = 2, kCluster = 1;\n"
             "  static constexpr bool kWhole = {}, kShared = false, kFull = false;\n"
             "  static constexpr bool kVectors = true;\n"
             "  static constexpr RowPart kPart = RowPart::Row;\n}};\n",
             loop.lanes, loop.whole) +
         kUnitRows +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__(128, 1) product(const float* x,\n"
             "    const float* w, float* y, int wide, int count, int depth, bool vector) {{\n"
             "  using Tile = ThinTile<float, true, true, {}, 32, 4, 1, 1>;\n"
             "  __shared__ ThinSlots<Tile> slots;\n"
             "  __shared__ Form::State states[4];\n"
             "  float* const lines = reinterpret_cast<float*>(tile_smem);\n"
             "  const int pitch = depth + 16;\n"
             "  const RowMemory<Form::State, void> memory{{states, nullptr, nullptr}};\n"
             "  const Form form{{x, lines, depth, pitch}};\n"
             "  const ThinMatrix<float> matrices[] = {{{{w, depth, 1}}}};\n"
             "  const ThinShared<float> thin = {{lines, pitch, 1}};\n"
             "  ThinProduct<Tile, ThinShared<float>> product(slots, matrices, thin, wide, count, "
             "depth);\n"
             "  product.multiply(vector, thin_rows<Config>(form, memory, count, depth));\n"
             "  product.finish([&](long long at, long long line, const float(&sums)[1]) {{\n"
             "    y[line * wide + at] = sums[0];\n  }});\n}}\n",
             loop.lines);
}

class ThinRowsTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ThinRowsTemplate, CompilesWithAFunctorWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Loop& loop : kLoops) {
    expect_in_registers(text(loop), GetParam().architecture, loop.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ThinRowsTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
