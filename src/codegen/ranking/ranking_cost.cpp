// Configurations of a ranking and their times by estimate: what memory and the instructions take,
// and what rows take that wait for their loads and sorts.
#include "codegen/ranking/ranking_cost.h"
#include "select/overlap.h"

#include <algorithm>
#include <cmath>

namespace redfuser::codegen {
namespace {

using Part = RankingConfig::Part;

// Instructions of a warp that a multiprocessor issues per cycle; microseconds; instructions;
// cycles.
constexpr double kIssueRate = 3.5;
constexpr double kLoadTime = 1.5, kTileTime = 0.8, kRankTime = 0.05, kMergeTime = 2;
constexpr double kElementWork = 12;
constexpr int kBlocksOfMultiprocessor = 32, kOwnRegisters = 48;
constexpr int kMaxElements = 32, kMaxRegisterWords = 32;
// Ranks that a warp takes one after the other.
constexpr int64_t kMaxWarpRanks = 128;

int64_t power_of_two(int64_t at_least) {
  int64_t power = 1;
  while (power < at_least) power <<= 1;
  return power;
}

// Of a thread: its elements as they lie in memory, and their keys.
int registers_of(const RankingFacts& facts, const RankingConfig& c) {
  return kOwnRegisters + c.chunks * (facts.words + facts.width * facts.key_bytes / 4);
}

bool raises(const RankingFacts& facts, const RankingConfig& c) { return 2 * facts.k <= c.threads; }

// Of one tile, into the list.
int64_t most_added(const RankingFacts& facts, const RankingConfig& c) {
  const int64_t elements = int64_t{1} * facts.width * c.chunks;
  return elements * (raises(facts, c) ? facts.k : c.threads);
}

class Enumeration {
 public:
  Enumeration(const Target& target, const RankingFacts& facts, int64_t rows, int64_t length)
      : target_(target), facts_(facts), rows_(rows), length_(length) {}

  std::vector<std::pair<RankingConfig, double>> run() {
    add_warp();
    for (const int threads : {32, 64, 128, 256, 512, 1024}) {
      for (int chunks = 1; chunks * facts_.width <= 16; chunks *= 2) {
        if (chunks * facts_.words > kMaxRegisterWords) continue;
        const RankingConfig config{Part::Block, threads, chunks};
        if (threads * registers_of(facts_, config) > select::kRegistersOfMultiprocessor) continue;
        add_block(threads, chunks);
      }
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    return std::move(candidates_);
  }

 private:
  void add_warp() {
    if (length_ < 0 || facts_.k > kMaxWarpRanks) return;
    const int64_t step = int64_t{32} * facts_.width;
    const auto chunks = static_cast<int>(std::max<int64_t>(1, (length_ + step - 1) / step));
    if (chunks * facts_.width > kMaxElements || chunks * facts_.words > kMaxRegisterWords) return;
    const RankingConfig c{Part::Warp, 128, chunks, 1};
    const double rank = kElementWork + 4.0 * chunks * facts_.width;
    const double work = kElementWork * chunks * facts_.width + rank * static_cast<double>(facts_.k);
    const double row = kLoadTime + (kRankTime + rank / target_.clock) *
                                       static_cast<double>(facts_.k * facts_.lists);
    push(c, row, work * facts_.lists, c.threads / 32.0);
  }

  void add_block(int threads, int chunks) {
    RankingConfig c{Part::Block, threads, chunks, 1};
    const int64_t capacity = ranking_capacity(facts_, c, length_);
    if (capacity == 0 || ranking_shared_bytes(facts_, c, length_) > target_.shared_bytes) return;
    const int64_t length = length_ < 0 ? capacity : length_;
    const auto [row, work] = block_row(c, length, capacity);
    push(c, row, work, 1);
    const int64_t tile = int64_t{threads} * facts_.width * chunks;
    if (threads == 32 || facts_.maps_back) return;
    if (length < 4 * tile || rows_ > kLaunchCounters) return;
    c.part = Part::Segments;
    const int64_t lists = ranking_capacity(facts_, c, -1);
    if (lists == 0 || ranking_shared_bytes(facts_, c, -1) > target_.shared_bytes) return;
    int64_t last = 0;
    for (c.most = 4; c.most <= 256; c.most *= 2) {
      const int64_t tiles = (length + tile * c.most - 1) / (tile * c.most);
      const int64_t segments = (length + tile * tiles - 1) / (tile * tiles);
      if (segments == last || segments < 2) continue;
      last = segments;
      const auto [part, part_work] = block_row(c, tile * tiles, lists);
      const auto [merge, merge_work] = block_row(c, segments * facts_.k, lists);
      push(c, part + merge + kMergeTime, part_work + merge_work / static_cast<double>(segments), 1,
           segments);
    }
  }

  double issue_rate() const { return kIssueRate * target_.clock; }

  // Cycles of one thread among so many are cycles of the block, if it has at most four warps.
  static double turns(int threads) { return std::max(1.0, threads / 128.0); }

  struct Cost {
    double time = 0, work = 0;
    Cost& operator+=(const Cost& other) {
      time += other.time;
      work += other.work;
      return *this;
    }
  };

  // `each` entries of a thread find their places among `count`.
  Cost counting(double count, double each, int threads) const {
    constexpr double kCompare = 4, kStart = 300;
    const double work = count * each * kCompare;
    return {(kStart + work * turns(threads)) / target_.clock, work * threads / 32};
  }
  // The last of the first k is found bit by bit.
  Cost selecting(double count, int threads) const {
    constexpr double kBits = 32, kCompare = 4, kMeeting = 150;
    const double work = kBits * kCompare * std::ceil(count / threads);
    return {(kBits * kMeeting + work * turns(threads)) / target_.clock,
            (work + kBits * 20) * threads / 32};
  }
  // Eight entries of a thread are sorted or merged at a time.
  Cost sorting(double size, int threads) const {
    constexpr double kStepWork = 170, kStepTime = 250;
    const double log = std::log2(size), steps = log * (log + 5) / 6;
    const double groups = std::ceil(size / 8 / threads);
    return {steps * (kStepTime + groups * kStepWork * turns(threads)) / target_.clock,
            steps * kStepWork * std::max(1.0, size / 8 / 32)};
  }

  // The time of a row alone, and its instructions.
  std::pair<double, double> block_row(const RankingConfig& c, int64_t length,
                                      int64_t capacity) const {
    const int64_t tile = int64_t{c.threads} * facts_.width * c.chunks;
    const auto k = static_cast<double>(facts_.k);
    const double tiles = std::ceil(static_cast<double>(length) / static_cast<double>(tile));
    double first = static_cast<double>(std::min(length, tile));
    const double elements = kElementWork * static_cast<double>(length) / 32;
    Cost cost{
        kLoadTime + kTileTime * tiles + elements / issue_rate() * std::max(1.0, 128.0 / c.threads),
        elements};
    if (raises(facts_, c)) {
      cost += counting(c.threads, 1, c.threads);
      first = std::min(first, 1.3 * k);
    }
    // Of elements in random order, the i-th is among the first k with a probability of k / i.
    const double joined = first + k * std::log(std::max(1.0, tiles));
    const auto most = static_cast<double>(capacity), room = most - most_added(facts_, c);
    if (length > capacity && joined > room) {
      const Cost cut = selecting(most, c.threads);
      const double cuts = std::ceil((joined - room) / std::max(k, room - k));
      cost += {cut.time * cuts, cut.work * cuts};
    }
    const double left = std::max(k, std::min(joined, most));
    if (left <= 2 * c.threads) {
      cost += counting(left, left > c.threads ? 2 : 1, c.threads);
    } else {
      const auto size = static_cast<double>(power_of_two(facts_.k));
      if (left > size) cost += selecting(left, c.threads);
      cost += sorting(size, c.threads);
    }
    return {cost.time * facts_.lists, cost.work * facts_.lists};
  }

  // `per_block` rows of a block, or `segments` blocks of a row.
  void push(const RankingConfig& c, double row, double work, double per_block,
            int64_t segments = 1) {
    const double blocks = static_cast<double>(rows_ * segments) / per_block;
    const double bytes = 4.0 * facts_.words / facts_.width * static_cast<double>(rows_) *
                         static_cast<double>(std::max<int64_t>(length_, 0));
    int64_t resident =
        std::min({select::kThreadsOfMultiprocessor / c.threads, kBlocksOfMultiprocessor,
                  select::kRegistersOfMultiprocessor / registers_of(facts_, c) / c.threads});
    if (c.part != Part::Warp) {
      const int64_t own = kBlockReserved + ranking_shared_bytes(facts_, c, length_);
      resident = std::min(resident, (target_.shared_bytes + kBlockReserved) / own);
    }
    const double at_once =
        static_cast<double>(target_.multiprocessors * std::max<int64_t>(resident, 1));
    const double waiting = row * std::ceil(blocks / at_once);
    const double issue =
        work * static_cast<double>(rows_ * segments) / (issue_rate() * target_.multiprocessors);
    candidates_.emplace_back(c, select::kLaunchTime + select::overlapped(bytes / target_.dram_rate,
                                                                         std::max(waiting, issue)));
  }

  const Target& target_;
  const RankingFacts& facts_;
  const int64_t rows_, length_;
  std::vector<std::pair<RankingConfig, double>> candidates_;
};

}  // namespace

int64_t ranking_capacity(const RankingFacts& facts, const RankingConfig& config, int64_t length) {
  if (config.part == Part::Warp) return 0;
  int64_t entries = facts.k + most_added(facts, config);
  if (config.part == Part::Block && length >= 0) {
    entries = std::min(entries, std::max(length, facts.k));
  }
  return power_of_two(entries);
}

int64_t ranking_shared_bytes(const RankingFacts& facts, const RankingConfig& config,
                             int64_t length) {
  if (config.part == Part::Warp) return 0;
  const int64_t entry = facts.key_bytes == 8 ? 16 : 8;
  const int64_t best = raises(facts, config) ? config.threads : 1;
  // A chosen entry, numbers of entries, and the alignment of the next list.
  constexpr int64_t kCounts = 16, kAlignment = 16;
  const int64_t bytes = entry * (ranking_capacity(facts, config, length) + best + 1) + kCounts;
  return facts.lists * ((bytes + kAlignment - 1) / kAlignment * kAlignment);
}

std::vector<std::pair<RankingConfig, double>> ranking_candidates(const Target& target,
                                                                 const RankingFacts& facts,
                                                                 int64_t rows, int64_t length) {
  return Enumeration(target, facts, rows, length).run();
}

}  // namespace redfuser::codegen
