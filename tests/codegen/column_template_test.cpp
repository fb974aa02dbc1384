// The main loop of reductions along a strided axis by itself: src/device/columns.cuh with functors
// written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/columns.cuh"};

// What the functors share: a matrix of `length` rows of `columns` floats for each outer index, of
// which a thread reduces four adjacent columns.
constexpr const char* kMatrix = R"(
struct Matrix {
  static constexpr int kWidth = 4, kBeside = 1;
  struct Row {
    long long outer, column;
    int valid;
  };
  struct Words {
    unsigned k[4];
  };
  const float* x;
  float* y;
  long long length, columns;
  __device__ Row row_of(long long outer, long long column) const {
    return {outer, column, static_cast<int>(max_of(min_of(columns - column, 4ll), 0ll))};
  }
  __device__ void set_parts(Row&, int) const {}
  __device__ long long place(const Row& row, int position) const {
    return (row.outer * length + position) * columns + row.column;
  }
  template <Reads Set>
  __device__ void read(Words& words, const Row& row, int position) const {
    if constexpr (Set != Reads::Remaining) {
      load_column<float, kWidth, kVector>(words.k, x + place(row, position), row.valid);
    }
  }
};
)";

// Σ x: one number of state, one result per column.
constexpr const char* kSum = R"(
struct Form : Matrix {
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
  __device__ State merge(const State& a, const State& b) const { return {a.sum + b.sum}; }
  template <int High, int Low>
  __device__ State merged(State s) const {
    return {mask_reduce<SumOp, High, Low>(s.sum)};
  }
  __device__ void start(Running&, const State&) const {}
  __device__ void begin(Running& t, const State&, int) const { t.part.sum = 0; }
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.sum = Whole ? t.part.sum : s.sum + t.part.sum;
  }
  __device__ void lift(Phase<0>, Running& t, const Words& words, const Row&, int, int v) const {
    t.part.sum += pick<float>(words.k, v);
  }
  __device__ Tail finish(const State& s, const Row&, int) const {
    return {static_cast<float>(s.sum)};
  }
  __device__ void write_rows(const Row& row, const Tail (&tails)[kWidth]) const {
    store_member<kWidth, kVector>(y + row.outer * columns + row.column, tails, &Tail::sum,
                                  row.valid);
  }
  __device__ void write_row(const Row&, const Tail&, int) const {}
};
)";

// exp(x - m) / Σ exp(x - m) with the maximum m as reference of the sum.
constexpr const char* kSoftmax = R"(
struct Form : Matrix {
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
  using Tail = State;
  static __device__ State identity() { return {-__uint_as_float(0x7f800000u), 0}; }
  static __device__ float moved(float sum, float from, float to) {
    return from == to ? sum : sum * expf(from - to);
  }
  __device__ State merge(const State& a, const State& b) const {
    const float most = MaxOp::apply(a.most, b.most);
    return {most, moved(a.sum, a.most, most) + moved(b.sum, b.most, most)};
  }
  template <int High, int Low>
  __device__ State merged(State s) const {
    const float most = mask_reduce<MaxOp, High, Low>(s.most);
    return {most, mask_reduce<SumOp, High, Low>(moved(s.sum, s.most, most))};
  }
  __device__ void start(Running& t, const State& s) const { t.old = s.most; }
  __device__ void begin(Running& t, const State&, int) const { t.part = identity(); }
  template <bool Whole>
  __device__ void settle(Phase<0>, Running& t, const State& s) const {
    t.state.most = Whole ? t.part.most : MaxOp::apply(s.most, t.part.most);
  }
  template <bool Whole>
  __device__ void settle(Phase<1>, Running& t, const State& s) const {
    t.state.sum = Whole ? t.part.sum : moved(s.sum, t.old, t.state.most) + t.part.sum;
  }
  __device__ void lift(Phase<0>, Running& t, const Words& words, const Row&, int, int v) const {
    t.part.most = MaxOp::apply(t.part.most, pick<float>(words.k, v));
  }
  __device__ void lift(Phase<1>, Running& t, const Words& words, const Row&, int, int v) const {
    t.part.sum += expf(pick<float>(words.k, v) - t.state.most);
  }
  __device__ Tail finish(const State& s, const Row&, int) const { return s; }
  __device__ void write_rows(const Row&, const Tail (&)[kWidth]) const {}
  __device__ void write_row(const Row&, const Tail&, int) const {}
  struct Values {
    float y[kWidth];
  };
  __device__ void map(Values& values, const Words& words, const Row&, const Tail& tail, int,
                      int v) const {
    values.y[v] = expf(pick<float>(words.k, v) - tail.most) / tail.sum;
  }
  __device__ void put(const Values& values, const Row& row, int position) const {
    store_column<kWidth, kVector>(y + place(row, position), values.y, row.valid);
  }
};
)";

struct Loop {
  const char* name;
  int across, along, chunks, cluster, filled;
  const char *whole, *vector, *part;
};

constexpr Loop kLoops[] = {
    {"whole", 8, 16, 4, 1, 0, "true", "true", "Row"},
    {"all_but_one", 8, 16, 4, 1, 3, "true", "true", "Row"},
    {"full_tiles", 32, 8, 4, 1, 4, "false", "true", "Row"},
    {"not_a_power_of_two", 5, 24, 4, 1, 0, "false", "false", "Row"},
    {"cluster", 8, 16, 4, 4, 0, "true", "true", "Row"},
    {"segment", 16, 8, 4, 1, 0, "false", "true", "Segment"},
    {"partials", 16, 8, 4, 1, 0, "false", "false", "Partials"},
    {"finish", 16, 8, 4, 1, 0, "false", "true", "Finish"},
};

std::string kernel(const Loop& loop, const char* form) {
  return codegen::device_prelude(kHeaders) +
         fmt::format("constexpr bool kVector = {};\n", loop.vector) + kMatrix + form +
         fmt::format(
             "using Tile = ColumnTile<{}, {}, {}, {}, {}, RowPart::{}, {}>;\n"
             "extern \"C\" __global__ void __launch_bounds__(Tile::Threads) loop(const float* x,\n"
             "    float* y, long long length, long long columns, Form::State* states,\n"
             "    unsigned* counter) {{\n"
             "  __shared__ Form::State slots[(Tile::Shares + 1) * Tile::Across * 4];\n"
             "  const Form form{{{{x, y, length, columns}}}};\n"
             "  fold_columns<Tile>(form, slots, columns, static_cast<int>(length),\n"
             "                     static_cast<int>(length / 2 + 1), states, counter);\n}}\n",
             loop.across, loop.along, loop.chunks, loop.whole, loop.filled, loop.part,
             loop.cluster);
}

class ColumnTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(ColumnTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Loop& loop : kLoops) {
    if (loop.cluster > 1 && architecture < 90) continue;
    for (const char* form : {kSum, kSoftmax}) {
      expect_in_registers(kernel(loop, form), architecture, loop.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ColumnTemplate, ::testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
