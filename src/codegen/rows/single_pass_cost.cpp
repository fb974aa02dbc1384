// Estimates of single-pass row kernels: the time of the memory traffic, or the latency of loads and
// of reductions over threads, if that is longer.
#include "codegen/rows/single_pass_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codegen/rows/single_pass_select.h"

namespace redfuser::codegen {
namespace {

// Microseconds.
constexpr double kLoadTime = 1.0, kChunkTime = 0.06, kTileTime = 0.6;
constexpr double kWarpTime = 0.1, kBlockTime = 0.3, kClusterTime = 1.2;
constexpr int kOwnRegisters = 32;

class Enumeration {
 public:
  Enumeration(const Target& target, const SinglePassFacts& facts, int64_t rows, int64_t length)
      : target_(target), facts_(facts), rows_(rows), length_(length) {}

  std::vector<Candidate> run() {
    for (const int lanes : {4, 8, 16, 32}) add_whole(lanes, 128, false, 1);
    for (const int threads : {64, 128, 256, 512}) add_whole(threads, threads, false, 1);
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
    if (!shared && words > kMaxRegisterWords) return;
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
          // The counting of blocks takes about as long as the start of a second kernel.
          const double merge = kBlockTime + 0.01 * static_cast<double>(segments);
          candidates_.push_back(
              {choice_of(SegmentConfig{threads, chunks, most}),
               select::kLaunchTime + merge + time(walk, rows_ * segments, tile * tiles)});
        }
      }
    }
  }

  // Bytes of dynamic and static shared memory.
  int64_t shared_bytes(const SinglePassConfig& c) const {
    return int64_t{4} * facts_.words * c.chunks * c.threads +
           single_pass_static_bytes(c, facts_.state_bytes,
                                    c.lanes == 32 ? facts_.max_staging_words : 0);
  }

  void push(const SinglePassConfig& c) {
    candidates_.push_back({choice_of(c), time(c, rows_, length_)});
  }

  // Microseconds of `rows` rows of `length` elements.
  double time(const SinglePassConfig& c, int64_t rows, int64_t length) const {
    const int64_t tiles = c.whole ? 1 : (length + tile_elements(c) - 1) / tile_elements(c);
    const bool twice = facts_.maps_back && !c.whole;
    const double passes = 1 + (facts_.maps_back ? 1 : 0) + (twice ? 0.7 : 0);
    const double bytes = short_runs() * 4.0 * facts_.words / facts_.width *
                         static_cast<double>(rows) * static_cast<double>(length);
    double row = kLoadTime + kChunkTime * c.chunks + kWarpTime +
                 kTileTime * static_cast<double>((twice ? 2 : 1) * (tiles - 1));
    if (c.lanes > 32) row += kBlockTime + 0.1 * std::log2(c.threads / 32);
    if (c.cluster > 1) row += kClusterTime;
    const double at_once =
        std::max(1.0, target_.multiprocessors * static_cast<double>(resident_threads(c)) /
                          (c.lanes * c.cluster));
    const double waiting = row * std::ceil(static_cast<double>(rows) / at_once);
    return select::kLaunchTime + std::hypot(passes * bytes / target_.dram_rate, waiting);
  }

  // What memory moves beside runs that are shorter than a line of the cache.
  double short_runs() const {
    constexpr double kLine = 128, kShare = 0.8;
    const auto run = static_cast<double>(facts_.run_bytes);
    return run == 0 || run >= kLine ? 1 : std::pow(kLine / run, kShare);
  }

  int resident_threads(const SinglePassConfig& c) const {
    const int registers = kOwnRegisters + (c.shared ? 8 : 2 * facts_.words * c.chunks);
    int blocks =
        std::min(select::kThreadsOfMultiprocessor, select::kRegistersOfMultiprocessor / registers) /
        c.threads;
    if (c.shared) {
      const int64_t all = target_.shared_bytes + kBlockReserved;
      const int64_t own = shared_bytes(c) + kBlockReserved;
      blocks = static_cast<int>(std::min<int64_t>(blocks, all / own));
    }
    return std::max(blocks, 1) * c.threads;
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
