// Estimates of single-pass row kernels: the time of the memory traffic, or the latency of loads and
// of reductions over threads, if that is longer.
#include "codegen/rows/single_pass_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codegen/rows/single_pass_select.h"

namespace redfuser::codegen {
namespace {

// All constants are fitted to the times of graphs drawn at random and of the benchmarks' rows and
// layouts, on an H200 and an H100. Microseconds: of a kernel; of each word of a thread's chunks in
// the first tile and in further ones, each of which waits for its loads; of what a row's threads
// wait for each other.
constexpr double kStartTime = 3.6, kChunkTime = 0.074, kTileTime = 0.26, kTileChunkTime = 0.022;
// Groups of rows that start at no vector are loaded, and stored, behind branches, which the blocks
// of a full multiprocessor wait for one after the other: of each chunk, and the share of its store.
constexpr double kRaggedTime = 0.2, kRaggedStore = 0.52;
// Blocks that are alone wait in each further tile that is mapped back: of each element of a thread.
constexpr double kRaggedElement = 0.0375;
constexpr double kBlockTime = 0.46, kLaneTime = 0.044, kSharedTime = 0.085;
// Of segments: the count of who is last, each of which waits for the one before, and a second
// kernel.
constexpr double kCountTime = 1.85, kSegmentTime = 0.004, kSecondKernel = 2.18;
// Of segments by more threads than kNarrowBlock, the share that they take longer.
constexpr double kWideSegment = 0.05;
// Lanes' instructions for an element; for a lane's state, and each exchange of it.
constexpr double kElementWork = 14.2, kStateWork = 8.9, kExchangeWork = 8;
constexpr double kStateBytes = 8;
// Threads of a block of many short rows.
constexpr int kWideBlock = 512;
// Bandwidth falls with the multiprocessors that have blocks, to this power.
constexpr double kIdlePower = 0.135;
// What reading a row again takes, of reading it once.
constexpr double kAgain = 1.52;
// Shares that the time of memory grows by: where few lanes have several chunks of a row; in
// clusters, for every doubling of the threads above kNarrowBlock and every halving of the chunks
// below kManyChunks; for each word beyond the first few that a thread keeps in registers until it
// is mapped back.
constexpr double kNarrowShare = 0.2, kWideShare = 0.11, kFewChunksShare = 0.31, kKeptShare = 0.0086;
constexpr int kFewLanes = 4, kNarrowBlock = 256, kManyChunks = 8, kFewWords = 12;
// Registers of a thread: its own, and for each word that it keeps.
constexpr double kOwnRegisters = 5.9, kWordRegisters = 0.41;

class Enumeration {
 public:
  Enumeration(const Target& target, const SinglePassFacts& facts, int64_t rows, int64_t length)
      : target_(target), facts_(facts), rows_(rows), length_(length) {}

  std::vector<Candidate> run() {
    for (const int lanes : {1, 2, 4, 8, 16, 32}) {
      add_whole(lanes, 128, false, 1);
      if (rows_ * lanes >= int64_t{kWideBlock} * target_.multiprocessors) {
        add_whole(lanes, kWideBlock, false, 1);
      }
    }
    for (const int threads : {64, 128, 256, 512}) add_whole(threads, threads, false, 1);
    if (facts_.narrow) return std::move(candidates_);
    if (facts_.shareable) add_shared();
    add_walks();
    const bool counted = facts_.maps_back || rows_ <= kLaunchCounters;
    if (counted && (!facts_.maps_back || length_ > kLongestShared)) add_segments();
    return std::move(candidates_);
  }

 private:
  // Rows that fit into the shared memory of a cluster have no segments.
  static constexpr int64_t kLongestShared = int64_t{1} << 17;
  static constexpr int kMaxRegisterWords = 64;

  SinglePassConfig config(int lanes, int threads, int chunks) const {
    SinglePassConfig result;
    result.lanes = lanes;
    result.threads = threads;
    result.width = facts_.width;
    result.chunks = chunks;
    return result;
  }

  int chunks_of(int lanes, int cluster) const {
    const int64_t step = int64_t{1} * lanes * facts_.width * cluster;
    return static_cast<int>(std::clamp<int64_t>((length_ + step - 1) / step, 1, 1 << 20));
  }

  void add_whole(int lanes, int threads, bool shared, int cluster) {
    SinglePassConfig c = config(lanes, threads, chunks_of(lanes, cluster));
    c.whole = true;
    c.shared = shared;
    c.cluster = cluster;
    const int64_t words = int64_t{1} * facts_.words * c.chunks;
    if (!shared && words > most_words(lanes)) return;
    if (shared && shared_bytes(c) > target_.shared_bytes) return;
    push(c);
  }

  void add_shared() {
    add_whole(32, 128, true, 1);
    for (const int threads : {128, 256, 512}) {
      for (const int cluster : {1, 2, 4, 8}) {
        if (cluster == 1 || target_.architecture >= 90) add_whole(threads, threads, true, cluster);
      }
    }
  }

  // Words of a row that a thread keeps in registers. Of narrow groups each has a check of its own.
  int most_words(int lanes) const {
    constexpr int kMapped = 48, kFolded = 28;
    if (!facts_.narrow || lanes <= 32) return kMaxRegisterWords;
    return facts_.maps_back ? kMapped : kFolded;
  }

  // Tile after tile. If outputs need the row again, it is read twice.
  void add_walks() {
    for (const int chunks : {1, 2, 4}) {
      if (facts_.words * chunks > kMaxRegisterWords) continue;
      if (!facts_.maps_back) push(config(32, 128, chunks));
      for (const int threads : {128, 256, 512}) push(config(threads, threads, chunks));
    }
  }

  void add_segments() {
    constexpr int64_t kMinTiles = 4;
    for (const int threads : {256, 512, 128}) {
      for (const int chunks : {4, 2, 1}) {
        const int64_t tile = int64_t{1} * threads * facts_.width * chunks;
        if (facts_.words * chunks > kMaxRegisterWords || length_ < kMinTiles * tile) continue;
        int64_t last_tiles = 0;  // of a segment
        for (const int most : {128, 256, 512}) {
          const int64_t tiles = (length_ + tile * most - 1) / (tile * most);
          if (std::exchange(last_tiles, tiles) == tiles) continue;
          const int64_t segments = (length_ + tile * tiles - 1) / (tile * tiles);
          const SinglePassConfig walk = config(threads, threads, chunks);
          const double wide = threads > kNarrowBlock ? 1 + kWideSegment : 1;
          const double merge = kCountTime + kSegmentTime * static_cast<double>(segments) +
                               (facts_.maps_back ? kSecondKernel : 0);
          candidates_.push_back({choice_of(SegmentConfig{threads, chunks, most}),
                                 merge + wide * time(walk, rows_ * segments, tile * tiles)});
        }
      }
    }
  }

  // Bytes of dynamic and static shared memory.
  int64_t shared_bytes(const SinglePassConfig& c) const {
    return int64_t{4} * facts_.shared_words * c.chunks * c.threads +
           single_pass_static_bytes(c, facts_.state_bytes,
                                    c.lanes == 32 ? facts_.max_staging_words : 0);
  }

  // Loads that wait in registers leave few of them for the offsets of chunks, and so do addresses
  // in other blocks as ptxas compiles them for sm_100 and newer.
  bool has_registers(const SinglePassConfig& c) const {
    constexpr int kMaxWaiting = 1024;  // chunks of a block
    constexpr int kMaxShared = 4;      // chunks of a thread in a cluster
    if (!facts_.scattered) return true;
    return c.shared ? target_.architecture < 100 || c.cluster == 1 || c.chunks <= kMaxShared
                    : c.chunks * c.threads <= kMaxWaiting;
  }

  void push(const SinglePassConfig& c) {
    if (!has_registers(c)) return;
    candidates_.push_back({choice_of(c), time(c, rows_, length_)});
  }

  // Microseconds of `rows` rows of `length` elements.
  double time(const SinglePassConfig& c, int64_t rows, int64_t length) const {
    const int64_t tiles = c.whole ? 1 : (length + tile_elements(c) - 1) / tile_elements(c);
    const bool twice = facts_.maps_back && !c.whole;
    const double blocks = std::ceil(static_cast<double>(rows) * c.lanes * c.cluster / c.threads);
    const double busy = std::min(1.0, blocks / target_.multiprocessors);
    const double elements = static_cast<double>(rows) * static_cast<double>(length);
    const double covered =
        static_cast<double>(rows) * static_cast<double>(tiles * tile_elements(c));
    const double states = static_cast<double>(rows) * c.lanes * c.cluster *
                          static_cast<double>(facts_.state_bytes) / kStateBytes;
    const double work = (kElementWork * covered +
                         states * (kStateWork + kExchangeWork * std::log2(std::min(c.lanes, 32)))) /
                        (select::kLanes * target_.clock * target_.multiprocessors);
    const double memory = std::max({elements * memory_time(c, twice), elements * sector_time(c),
                                    blocks * select::kBlockStart});
    // Blocks beyond those that run at once wait, half of them for whole turns.
    const double full =
        blocks / (target_.multiprocessors * static_cast<double>(resident_blocks(c)));
    const double turns = std::max(1.0, full);
    const double waits = (turns + std::ceil(turns)) / 2;
    const int64_t more_tiles = (twice ? 2 : 1) * tiles - 1;
    return kStartTime + std::max(memory, work) / std::pow(busy, kIdlePower) +
           waits * (row_time(c, more_tiles) + ragged_time(c, more_tiles, std::min(1.0, full)));
  }

  // Of a row, where `full` is the share of the blocks that can run at once.
  double ragged_time(const SinglePassConfig& c, int64_t more_tiles, double full) const {
    if (!facts_.ragged) return 0;
    const double first = kRaggedTime * (facts_.maps_back ? 1 + kRaggedStore : 1) * c.chunks * full;
    const double further =
        facts_.maps_back ? kRaggedElement * facts_.width * c.chunks * (1 - full) : 0;
    return first + further * static_cast<double>(more_tiles);
  }

  // Of an element.
  double memory_time(const SinglePassConfig& c, bool twice) const {
    const double passes = 1 + (facts_.maps_back ? 1 : 0) + (twice ? kAgain : 0);
    const double bytes = facts_.element_bytes;
    const int kept = facts_.maps_back && c.whole && !c.shared ? facts_.words * c.chunks : 0;
    return passes * short_runs() * bytes / target_.dram_rate *
           (1 + kKeptShare * std::max(kept - kFewWords, 0) +
            (c.lanes <= kFewLanes && c.chunks > 1 ? kNarrowShare : 0) +
            (c.cluster > 1 ? cluster_share(c) : 0));
  }

  // Of an element, where an access of a row's few lanes has less than a line: L2 moves whole
  // sectors. Elements of a ragged group are accessed one by one.
  double sector_time(const SinglePassConfig& c) const {
    constexpr double kSector = 32, kLine = 128;
    if (c.lanes >= 32) return 0;
    const int passes = facts_.maps_back ? 2 : 1;
    const double group = c.width * facts_.element_bytes, run = c.lanes * group;
    if (facts_.ragged && c.width > 1) return passes * std::min(kSector, group) / target_.l2_rate();
    if (c.chunks == 1 || run >= kLine) return 0;
    return passes * facts_.element_bytes * (1 + kSector / run) / target_.l2_rate();
  }

  static double cluster_share(const SinglePassConfig& c) {
    const auto doublings = [](int more, int less) {
      return std::max(0.0, std::log2(1.0 * more / less));
    };
    return kWideShare * doublings(c.threads, kNarrowBlock) +
           kFewChunksShare * doublings(kManyChunks, c.chunks);
  }

  // What memory moves beside runs that are shorter than a line of the cache.
  double short_runs() const {
    constexpr double kLine = 128, kShare = 0.59;
    const auto run = static_cast<double>(facts_.run_bytes);
    return run == 0 || run >= kLine ? 1 : std::pow(kLine / run, kShare);
  }

  double row_time(const SinglePassConfig& c, int64_t more_tiles) const {
    const int words = c.chunks * facts_.words;
    return kChunkTime * words +
           (kTileTime + kTileChunkTime * words) * static_cast<double>(more_tiles) +
           kLaneTime * std::log2(c.lanes) + (c.lanes > 32 ? kBlockTime : 0) +
           (c.shared ? kSharedTime : 0);
  }

  int64_t resident_blocks(const SinglePassConfig& c) const {
    constexpr double kSharing = 8;
    const double registers =
        kOwnRegisters + (c.shared ? kSharing : kWordRegisters * facts_.words * c.chunks);
    const double threads = std::min<double>(select::kThreadsOfMultiprocessor,
                                            select::kRegistersOfMultiprocessor / registers);
    int64_t blocks = std::min(static_cast<int64_t>(threads / c.threads),
                              int64_t{select::kBlocksOfMultiprocessor});
    if (c.shared) {
      blocks = std::min(blocks, (target_.shared_bytes + select::kBlockReserved) /
                                    (shared_bytes(c) + select::kBlockReserved));
    }
    return std::max<int64_t>(blocks, 1);
  }

  const Target& target_;
  const SinglePassFacts& facts_;
  const int64_t rows_, length_;
  std::vector<Candidate> candidates_;
};

}  // namespace

int64_t tile_elements(const SinglePassConfig& c) {
  return int64_t{1} * c.lanes * c.width * c.chunks * c.cluster;
}

std::vector<Candidate> single_pass_candidates(const Target& target, const SinglePassFacts& facts,
                                              int64_t rows, int64_t length) {
  return Enumeration(target, facts, rows, length).run();
}

}  // namespace redfuser::codegen
