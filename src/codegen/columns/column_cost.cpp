#include "codegen/columns/column_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/columns/column_functor.h"

namespace redfuser::codegen {
namespace {

// All constants are fitted to the times of graphs drawn at random, on an H200 and an H100.
// Microseconds: of a kernel, of a block, of its warps' exchange, and of each further tile.
constexpr double kStartTime = 2.91, kBlockTime = 1.24, kWarpTime = 0.092, kTileTime = 0.305;
// A thread takes its elements one after the other: of one in each phase, or output.
constexpr double kElementTime = 0.004;
constexpr double kSecondKernel = 3.56, kCountTime = 1.32, kSegmentTime = 0.227;
// Blocks of a cluster start and wait together: microseconds of a turn, for every doubling, and the
// share of everything that a doubling adds.
constexpr double kClusterTime = 2.5, kDoublingTime = 1.2, kDoublingShare = 0.2;
// Shares of the machine's rates that strided tiles reach.
constexpr double kMemoryShare = 0.85;
constexpr int kMostRegisters = 255;
constexpr int kOwnRegisters = 15, kPassRegisters = 68;
constexpr int kSector = 32;
// A run of adjacent bytes costs as if it were this much longer.
constexpr double kRunBytes = 14.4;
// What reading elements again takes of the first time: they may be in the second-level cache.
constexpr double kAgainCached = 0.12, kAgain = 0.28;
constexpr double kCachedShare = 0.572;  // of the second-level cache
// Instructions of an element, beside those of every phase and output, and of an access.
constexpr double kElementWork = 5.7, kPhaseWork = 9.8, kAccessWork = 5.4;
// Blocks that do not fill the last turn of all multiprocessors.
constexpr double kUneven = 0.64;
// Shares by which the work grows: of 8 and of 4 adjacent elements of a thread, whose warps read
// from more lines at once; of segments; of each element above kManyChunks that a thread has of a
// whole row.
constexpr double kEightShare = 0.15, kFourShare = 0.03, kSegmentsShare = 0.105;
constexpr double kManyShare = 0.05;
constexpr int kManyChunks = 32;
// Registers that a thread keeps of its tile.
constexpr int kTileRegisters = 48, kMaxChunks = 64, kWalkRegisters = 32, kMaxElements = 192;
constexpr int kMaxThreads = 512, kMaxIdle = 1024, kMaxAcross = 128, kMaxSlots = 40 * 1024;

// Of an element of a thread's rows: its words, and its offset if that is of its own.
int words_of(const ColumnFacts& facts, const ColumnConfig& c) {
  return (c.width * facts.element_bytes + 3) / 4 + (facts.scattered ? 2 : 0) + facts.shared;
}

int registers_of(const ColumnFacts& facts, const ColumnConfig& c) {
  const int state = static_cast<int>(facts.state_bytes / 8);
  return kOwnRegisters + words_of(facts, c) * c.chunks + c.width * (2 * state + 2);
}

// Passes over a tile keep what they make of its words.
bool spills(const ColumnFacts& facts, const ColumnConfig& c) {
  const bool passes = facts.phases + (facts.maps_back ? 1 : 0) > 1;
  const int kept = c.chunks * (passes ? std::max(words_of(facts, c), c.width) : words_of(facts, c));
  const int state = static_cast<int>(facts.state_bytes / 8);
  return kPassRegisters + kept + c.width * (2 * state + 2) >
         std::min(select::kRegistersOfMultiprocessor / c.threads() / 8 * 8, kMostRegisters);
}

double resident_blocks(const ColumnFacts& facts, const ColumnConfig& c) {
  const int registers = std::min(registers_of(facts, c), kMostRegisters);
  const int blocks = std::min({select::kThreadsOfMultiprocessor / c.threads(),
                               select::kRegistersOfMultiprocessor / (registers * c.threads()),
                               select::kBlocksOfMultiprocessor});
  return std::max(blocks, 1);
}

}  // namespace

ColumnFacts column_facts(StepBuilder& builder, const ColumnForm& form) {
  ColumnFacts facts;
  KernelText kernel = builder.kernel();
  facts.smallest = 4;
  facts.element_bytes = 0;
  std::set<ir::Expr> seen;
  auto note = [&](ir::Expr root, bool output) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || !seen.insert(e).second) return;
      if (!e->depends_on(form.rows.cascade.stream)) return;
      const auto place = column_offset(builder.pool(), form, e->args[0]);
      if (!place) return;
      facts.scattered |= !place->stride;
      facts.shared += place->shared ? 1 : 0;
      if (place->shared) return;
      const auto bytes = static_cast<int>(size_of(builder.dtype_of(e->integer)));
      facts.smallest = std::min(facts.smallest, bytes);
      facts.element_bytes += bytes;
      if (output) facts.written_bytes += bytes;
    });
  };
  for (const cascade::Accumulator& a : form.rows.accumulators) note(a.lift, false);
  for (const FlatStreaming::Output& output : form.rows.outputs) {
    if (!output.maps_back) continue;
    note(output.body, true);
    const auto bytes = static_cast<int>(size_of(builder.dtype_of(output.value)));
    facts.smallest = std::min(facts.smallest, bytes);
    facts.written_bytes += bytes;
    facts.maps_back = true;
  }
  facts.beside = form.beside;
  facts.element_bytes = std::max(facts.element_bytes, 1);
  facts.smallest = std::max(facts.smallest, 1);
  facts.state_bytes = state_bytes(form.rows);
  facts.phases = static_cast<int>(phases_of(form.rows).size());
  return facts;
}

namespace {

double tile_share(const ColumnConfig& c) {
  const double vector = c.width == 8 ? kEightShare : c.width == 4 ? kFourShare : 0;
  return (1 + vector) * (1 + (c.segments > 1 ? kSegmentsShare : 0)) *
         (1 + (c.whole ? kManyShare * std::max(0, c.chunks - kManyChunks) : 0));
}

// Microseconds behind the first ones of the first kernel.
double work_time(const Target& target, const ColumnFacts& facts, const ColumnConfig& c,
                 int64_t outers, int64_t columns, int64_t length) {
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const double multiprocessors = target.multiprocessors;
  const double memory_rate = kMemoryShare * target.dram_rate, cache_rate = target.l2_rate();
  const int64_t groups = outers * up(columns, c.rows());
  const int64_t tiles = c.whole ? 1 : std::max<int64_t>(up(length, c.tile()), 1);
  const int64_t of_segment = c.segments > 1 ? up(tiles, c.segments) : tiles;
  const int64_t segments = up(tiles, of_segment);
  const auto blocks = static_cast<double>(groups * segments * c.cluster);
  const bool twice = facts.maps_back && !c.whole;
  const auto rows = static_cast<double>(outers * columns);
  const double elements = rows * static_cast<double>(length);
  const double read = elements * facts.element_bytes;
  const double again =
      !twice ? 0
             : read * (read < kCachedShare * static_cast<double>(target.l2_bytes) ? kAgainCached
                                                                                  : kAgain);
  const double moved = read + again + elements * facts.written_bytes;
  // Of whole sectors, the neighbours' too where a tile's run starts within one.
  const bool all = c.rows() >= columns;
  const auto run = static_cast<double>(std::min<int64_t>(c.rows(), columns) * facts.smallest);
  const bool aligned = all || columns * facts.smallest % kSector == 0;
  const double waste =
      all ? 1
          : std::max(1.0, std::ceil((run + (aligned ? 0 : kSector - 4)) / kSector) * kSector / run);
  const double resident = resident_blocks(facts, c);
  const double memory =
      std::max(moved / memory_rate * (1 + (all ? 0 : kRunBytes / run)), moved * waste / cache_rate);
  const double lanes = select::kLanes * target.clock * multiprocessors;
  const double padded = static_cast<double>(groups * c.rows()) / rows;
  const int phases = facts.phases + (facts.maps_back ? 1 : 0);
  const double work = elements * (kElementWork + kPhaseWork * phases);
  const double accesses = moved / (facts.element_bytes * c.width) * kAccessWork;
  const double busy = (work + accesses) * padded / lanes;
  const double turns = blocks / multiprocessors;
  const double uneven = turns < 6 ? std::pow(std::ceil(turns) / turns, kUneven) : 1;
  const double doublings = std::log2(c.cluster);
  const double block = kBlockTime + kWarpTime * c.width * std::log2(std::max(2, c.threads() / 32)) +
                       (c.cluster > 1 ? kClusterTime + kDoublingTime * doublings : 0) +
                       kTileTime * static_cast<double>((twice ? 2 : 1) * (of_segment - 1)) +
                       kElementTime * phases * c.chunks * c.width *
                           static_cast<double>((twice ? 2 : 1) * of_segment);
  const double waiting = std::ceil(blocks / (resident * multiprocessors)) * block;
  double time = (std::max(memory, busy) * uneven + waiting) * (1 + kDoublingShare * doublings);
  if (segments == 1) return time;
  const double states = static_cast<double>(groups * segments * c.rows() * facts.state_bytes);
  time += kSegmentTime * static_cast<double>(up(segments, c.along));
  if (!facts.maps_back) return time + kCountTime + states / cache_rate;
  return time + kSecondKernel + 0.6 * states * static_cast<double>(segments) / cache_rate;
}

}  // namespace

double column_time(const Target& target, const ColumnFacts& facts, const ColumnConfig& c,
                   int64_t outers, int64_t columns, int64_t length) {
  return kStartTime + tile_share(c) * work_time(target, facts, c, outers, columns, length);
}

namespace {

class Tiles {
 public:
  Tiles(const Target& target, const ColumnFacts& facts, int64_t outers, int64_t columns,
        int64_t length)
      : target_(target), facts_(facts), outers_(outers), columns_(columns), length_(length) {}

  std::vector<ColumnConfig> run() {
    const int widest = std::max(1, 16 / facts_.smallest);
    for (int width = widest; width >= 1; width /= 2) {
      if (columns_ % width != 0) continue;
      for (int across = 1; across <= 32; across *= 2) {
        if (across > 1 && int64_t{across} * width >= 2 * columns_) break;
        for (int along = 32 / across; along * across <= kMaxThreads; along *= 2) {
          add({ColumnConfig::Part::Row, across, along, width});
        }
      }
      const int64_t all = columns_ / width;
      if (all > kMaxAcross || (all <= 32 && (all & (all - 1)) == 0)) continue;
      for (int along = 2; along <= 32 && along * all <= kMaxIdle; along *= 2) {
        if (along * all >= 64) {
          add({ColumnConfig::Part::Row, static_cast<int>(all), along, width});
        }
      }
    }
    return std::move(result_);
  }

 private:
  void push(const ColumnConfig& c) {
    const bool fits = column_static_bytes(c, facts_.state_bytes) <= kMaxSlots && !spills(facts_, c);
    const bool joins = facts_.beside == 1 || (c.by_warps() && c.rows() % facts_.beside == 0);
    if (fits && joins) result_.push_back(c);
  }

  void add(ColumnConfig c) {
    const int words = words_of(facts_, c);
    for (c.cluster = 1; c.cluster <= (target_.architecture >= 90 ? 8 : 1); c.cluster *= 2) {
      const int64_t step = int64_t{c.along} * c.cluster;
      const int64_t chunks = std::max<int64_t>((length_ + step - 1) / step, 1);
      if (c.cluster > 1 && (chunks < 2 || !facts_.maps_back)) break;
      if (chunks > kMaxChunks || chunks * words > kTileRegisters ||
          chunks * c.width > kMaxElements) {
        continue;
      }
      c.chunks = static_cast<int>(chunks);
      c.whole = true;
      push(c);
    }
    c.cluster = 1;
    c.whole = false;
    for (c.chunks = 2; c.chunks * words <= kWalkRegisters && c.chunks <= 8; c.chunks *= 2) {
      if (c.tile() > length_ && c.chunks > 2) break;
      c.segments = 1;
      push(c);
      const int64_t groups = outers_ * ((columns_ + c.rows() - 1) / c.rows());
      if (groups > kLaunchCounters || groups >= 4 * target_.multiprocessors) continue;
      for (c.segments = 4; c.segments <= 512; c.segments *= 2) {
        if (int64_t{c.tile()} * c.segments > length_) break;
        push(c);
      }
    }
  }

  const Target& target_;
  const ColumnFacts& facts_;
  const int64_t outers_, columns_, length_;
  std::vector<ColumnConfig> result_;
};

}  // namespace

std::vector<ColumnConfig> column_tiles(const Target& target, const ColumnFacts& facts,
                                       int64_t outers, int64_t columns, int64_t length) {
  return Tiles(target, facts, outers, columns, length).run();
}

}  // namespace redfuser::codegen
