// The merges of attention's partial states, src/device/attention, on the host: a thread for each of
// the device's, and functors written by hand. Results are those of all keys in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace host_states {

struct Dim {
  unsigned x;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline long long min(long long a, long long b) { return std::min(a, b); }

struct Block {
  explicit Block(size_t bytes) : bytes(bytes + 16, '\xa5') {}
  char* memory() {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (15 - (address + 15) % 16);
  }
  std::vector<char> bytes;
};

// Of a thread.
thread_local Dim threadIdx, blockIdx;
thread_local Block* own_block = nullptr;
thread_local std::barrier<>* block_meeting = nullptr;
thread_local std::vector<std::unique_ptr<Block>>* cluster = nullptr;

inline void __syncthreads() { block_meeting->arrive_and_wait(); }
inline unsigned ptx_count(unsigned* counter, unsigned most) {
  const unsigned before = *counter;
  *counter = before == most ? 0 : before + 1;
  return before;
}
// The only meeting of the threads of a cluster's blocks.
inline void ptx_cluster_arrive() {}
inline void ptx_cluster_wait() { block_meeting->arrive_and_wait(); }
inline unsigned ptx_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const char*>(p) - own_block->memory());
}
// The rank in the upper bits.
inline unsigned ptx_map_shared(unsigned address, unsigned rank) { return address | rank << 24; }
inline void ptx_load_cluster(float (&to)[4], unsigned address) {
  std::memcpy(to, (*cluster)[address >> 24]->memory() + (address & 0xffffff), sizeof to);
}

#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#include "device/attention/cluster_merge.cuh"
#include "device/attention/row_merge.cuh"
#include "device/attention/split_merge.cuh"

#include "codegen/functors/attention_rows.cuh"
#undef __align__
#undef __shared__
#undef __forceinline__
#undef __device__

}  // namespace host_states

namespace redfuser::codegen_tests {
namespace {

using namespace host_states;

// A functor's state of some scores, the weights of values, and results.
struct SoftmaxOf {
  double most = Softmax<16>::kLeast, sum = 0;
  explicit SoftmaxOf(const std::vector<double>& scores) {
    for (const double s : scores) most = std::max(most, s);
    for (const double s : scores) sum += std::exp(s - most);
  }
  double weight(double score) const { return std::exp(score - most); }
  template <typename State>
  State state() const {
    return {static_cast<float>(most), static_cast<float>(sum)};
  }
  double finish(double value) const { return value / sum; }
};

struct DeviationOf {
  double sum = 0, squares = 0, mean = 0;
  int count = 0;
  explicit DeviationOf(const std::vector<double>& scores) : count(static_cast<int>(scores.size())) {
    for (const double s : scores) sum += s;
    mean = count > 0 ? sum / count : 0;
    for (const double s : scores) squares += (s - mean) * (s - mean);
  }
  double weight(double) const { return 1; }
  template <typename State>
  State state() const {
    return {static_cast<float>(sum), static_cast<float>(squares), static_cast<float>(mean), count};
  }
  double finish(double value) const { return value / std::sqrt(squares); }
};

template <int Columns>
SoftmaxOf exact(const Softmax<Columns>*, const std::vector<double>& scores) {
  return SoftmaxOf(scores);
}
template <int Columns>
DeviationOf exact(const Deviation<Columns>*, const std::vector<double>& scores) {
  return DeviationOf(scores);
}

// Keys of every row in parts, some of them empty: scores of a part are far from those of another.
template <typename Form>
class Data {
 public:
  Data(int64_t rows, int parts, int columns) : parts_(parts), columns_(columns) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> near(-2, 2), far(-60, 60);
    std::uniform_int_distribution<int> keys(0, 3);
    for (int64_t i = 0; i < rows * parts; ++i) {
      const double middle = far(random);
      keys_.emplace_back();
      // The first part has keys: no row is empty.
      for (int key = keys(random) + (i % parts == 0 ? 2 : 0); key > 0; --key) {
        keys_.back().push_back({middle + near(random), {}});
        for (int c = 0; c < columns; ++c) keys_.back().back().values.push_back(near(random));
      }
    }
  }
  typename Form::State state(int64_t row, int part) const {
    return folded({at(row, part)}).template state<typename Form::State>();
  }
  float value(int64_t row, int part, int column) const {
    if (column >= columns_) return 0;
    return static_cast<float>(sum({at(row, part)}, folded({at(row, part)}), column));
  }
  double expected(int64_t row, int column) const {
    std::vector<const Keys*> all;
    for (int part = 0; part < parts_; ++part) all.push_back(at(row, part));
    const auto whole = folded(all);
    return whole.finish(sum(all, whole, column));
  }

 private:
  struct Key {
    double score;
    std::vector<double> values;
  };
  using Keys = std::vector<Key>;
  const Keys* at(int64_t row, int part) const {
    return &keys_[static_cast<size_t>(row * parts_ + part)];
  }
  static auto folded(const std::vector<const Keys*>& parts) {
    std::vector<double> scores;
    for (const Keys* part : parts) {
      for (const Key& key : *part) scores.push_back(key.score);
    }
    return exact(static_cast<const Form*>(nullptr), scores);
  }
  template <typename Exact>
  static double sum(const std::vector<const Keys*>& parts, const Exact& at, int column) {
    double result = 0;
    for (const Keys* part : parts) {
      for (const Key& key : *part) {
        result += at.weight(key.score) * key.values[static_cast<size_t>(column)];
      }
    }
    return result;
  }
  const int parts_, columns_;
  std::vector<Keys> keys_;
};

template <typename Form>
void expect_results(const Data<Form>& data, const std::vector<float>& out, int64_t rows,
                    int columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int c = 0; c < columns; ++c) {
      const double expected = data.expected(row, c);
      ASSERT_NEAR(out[static_cast<size_t>(row * columns + c)], expected,
                  1e-5 * (1 + std::abs(expected)))
          << "row " << row << " column " << c;
    }
  }
}

// Runs `thread` with the index of each thread of `blocks` blocks at the same time.
template <typename Thread>
void run_threads(int blocks, int threads, int first_block, const Thread& thread) {
  std::barrier<> meeting(blocks * threads);
  std::vector<std::thread> all;
  for (int i = 0; i < blocks * threads; ++i) {
    all.emplace_back([&, i] {
      threadIdx.x = static_cast<unsigned>(i % threads);
      blockIdx.x = static_cast<unsigned>(first_block + i / threads);
      block_meeting = &meeting;
      thread(i / threads, i % threads);
    });
  }
  for (std::thread& each : all) each.join();
}

// A thread's two rows of a tile: their states, and their values of N * 8 columns from `column` on.
template <typename Form, int N>
void fill_rows(const Data<Form>& data, int64_t row, int64_t rows, int part, int column,
               typename Form::State (&own)[2], float (&o)[N][4]) {
  for (int h = 0; h < 2; ++h) {
    const int64_t from = row + h * 8;
    own[h] = from < rows ? data.state(from, part) : typename Form::State{};
    for (int x = 0; x < N * 2; ++x) {
      o[x / 2][h * 2 + x % 2] =
          from < rows ? data.value(from, part, column + x / 2 * 8 + x % 2) : 0;
    }
  }
}

template <int Rows, int Warps, int Segments>
struct SplitConfig {
  static constexpr int kRows = Rows, kThreads = Warps * 32, kWarps = Warps, kSegments = Segments;
};

// Tiles of rows in blocks of split-KV attention; the blocks of a tile end in any order.
template <typename Config, typename Form>
void expect_split(int segments, int rows, int columns) {
  using Block = StateBlock<Config::kRows, Form>;
  const int groups = (rows + Config::kRows - 1) / Config::kRows;
  const Data<Form> data(rows, segments * Config::kWarps, columns);
  std::vector<float> out(static_cast<size_t>(rows) * columns);
  std::vector<float4> shared(Config::kWarps * Block::kFloats / 4);
  std::vector<float4> states(static_cast<size_t>(groups) * segments * Block::kFloats / 4);
  std::vector<unsigned> counters(static_cast<size_t>(groups));
  std::vector<int> order;
  for (int block = 0; block < groups * segments; ++block) order.push_back(block);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  const Form form{{out.data(), rows, columns}};
  for (const int block : order) {
    run_threads(1, Config::kThreads, block, [&](int, int thread) {
      const int group = block / segments, lane = thread % 32, first = group * Config::kRows;
      typename Form::State own[2];
      float o[Form::kColumns / 8][4];
      const int row = lane / 4 < Config::kRows ? first + lane / 4 : rows;
      fill_rows(data, row, rows, block % segments * Config::kWarps + thread / 32, lane % 4 * 2, own,
                o);
      finish_split<Config>(
          form, own, o, reinterpret_cast<float*>(shared.data()),
          reinterpret_cast<float*>(states.data()), counters.data(),
          {0, first, rows, static_cast<unsigned>(group), static_cast<unsigned>(segments)});
    });
  }
  expect_results(data, out, rows, columns);
  EXPECT_EQ(counters, std::vector<unsigned>(counters.size()));
}

TEST(SplitMerge, AgreesWithDoublePrecision) {
  expect_split<SplitConfig<1, 4, 4>, Softmax<128>>(4, 1, 128);
  expect_split<SplitConfig<1, 4, 1>, Deviation<64>>(1, 1, 64);
  expect_split<SplitConfig<16, 4, 0>, Softmax<64>>(5, 30, 64);
  expect_split<SplitConfig<16, 2, 3>, Deviation<256>>(3, 16, 250);
  expect_split<SplitConfig<8, 2, 22>, Softmax<80>>(22, 11, 75);
  expect_split<SplitConfig<2, 4, 0>, Deviation<16>>(37, 4, 16);
  expect_split<SplitConfig<4, 1, 0>, Softmax<32>>(1, 3, 24);
  expect_split<SplitConfig<16, 1, 0>, Softmax<256>>(3, 13, 256);
}

struct RowConfig {
  static constexpr int kRows = 1, kThreads = 128, kTileRows = 64, kMost = 128;
};

// Two warpgroups with halves of the columns store states of tiles of 64 rows, of which a block
// merges each row.
template <typename Form>
void expect_rows(int segments, int others, int rows, int columns) {
  constexpr int kBlocks = (Form::kColumns + 127) / 128 * 8;  // of eight columns, of a warpgroup
  using Block = StateBlock<1, Form>;
  const int tiles = (rows + 63) / 64;
  const Data<Form> data(int64_t{1} * others * rows, segments, columns);
  std::vector<float> out(static_cast<size_t>(others) * rows * columns);
  std::vector<float4> memory(static_cast<size_t>(others) * tiles * 64 * segments * Block::kFloats /
                             4);
  auto* const states = reinterpret_cast<float*>(memory.data());
  for (int work = 0; work < others * tiles * segments * 256; ++work) {
    const int thread = work % 256, segment = work / 256 % segments, tile = work / 256 / segments;
    const int row = thread % 128 / 32 * 16 + thread % 32 / 4, group = thread / 128;
    const int first = tile % tiles * 64, other = tile / tiles;
    threadIdx.x = static_cast<unsigned>(thread);
    typename Form::State own[2];
    float o[kBlocks][4];
    const int64_t from = int64_t{1} * other * rows;
    fill_rows(data, from + first + row, from + rows, segment, group * kBlocks * 8 + thread % 4 * 2,
              own, o);
    store_rows<Form>(
        states + (static_cast<int64_t>(tile) * 64 * segments + segment) * Block::kFloats, own, o,
        segments, row, rows - first, group * kBlocks * 8, group == 0);
  }
  const Form form{{out.data(), rows, columns}};
  for (int row = 0; row < others * rows; ++row) {
    run_threads(1, RowConfig::kThreads, row,
                [&](int, int) { merge_row<RowConfig>(form, states, segments, tiles, rows); });
  }
  expect_results(data, out, int64_t{1} * others * rows, columns);
}

TEST(RowMerge, AgreesWithDoublePrecision) {
  expect_rows<Softmax<512>>(3, 2, 3, 512);
  expect_rows<Deviation<272>>(11, 1, 2, 264);
  expect_rows<Softmax<512>>(2, 1, 70, 510);
}

// The blocks of a cluster have segments of the same 64 rows; each ends with a part of the columns.
template <int Blocks, typename Form>
void expect_cluster(int columns) {
  constexpr int kRows = 64, kParts = Form::kColumns / 16;
  constexpr int kHeads = Form::kColumns / 8 * kPartBytes;
  const Data<Form> data(kRows, Blocks, columns);
  std::vector<float> out(static_cast<size_t>(kRows) * columns);
  std::vector<std::unique_ptr<Block>> blocks;
  for (int i = 0; i < Blocks; ++i) {
    blocks.push_back(
        std::make_unique<Block>(kHeads + kRows * 4 * kHeadFloats<typename Form::State>));
  }
  const Form form{{out.data(), kRows, columns}};
  run_threads(Blocks, 256, 0, [&](int rank, int thread) {
    own_block = blocks[static_cast<size_t>(rank)].get();
    cluster = &blocks;
    const int group = thread / 128, row = thread % 128 / 32 * 16 + thread % 32 / 4;
    const int pair = thread % 4 * 2;
    typename Form::State own[2];
    float o[kParts][4];
    fill_rows(data, row, kRows, rank, group * kParts * 8 + pair, own, o);
    const typename Form::Row rows[2] = {form.row_of(0, row), form.row_of(0, row + 8)};
    const int first =
        merge_cluster<Blocks>(form, own, o, own_block->memory(), kHeads, {rank, group, row}, rows);
    ptx_cluster_wait();
    for (int x = 0; x < kParts / Blocks * 4; ++x) {
      const int h = x % 4 / 2, column = first + x / 4 * 8 + pair + x % 2;
      float value[4] = {o[x / 4][x % 4]};
      const auto tail = form.finish(own[h], rows[h]);
      float results[4] = {};
      Form at = form;
      at.y = results;
      at.columns = 1;
      at.write(value, own[h], {0}, tail, 0, true);
      out[static_cast<size_t>((row + h * 8) * columns + column)] = results[0];
    }
  });
  expect_results(data, out, kRows, columns);
}

TEST(ClusterMerge, AgreesWithDoublePrecision) {
  expect_cluster<2, Softmax<256>>(256);
  expect_cluster<2, Deviation<64>>(64);
}

}  // namespace
}  // namespace redfuser::codegen_tests
