#include "codegen/scan/scan_cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/polynomial.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

// Microseconds: of a kernel with its first loads, of a tile behind another, of a tile whose warps
// meet, and of blocks that wait for those before them.
constexpr double kStartTime = 1.5, kTileTime = 0.9, kMeetTime = 0.25, kChainTime = 2.5;
constexpr double kHopTime = 1.5;  // from a group of tiles to the next
// What blocks that wait for others take of the time of those that do not.
constexpr double kSharedLines = 1.3, kSharedColumns = 1.6;
// Instructions of an element, and of a group beside its elements.
constexpr double kElementWork = 7, kGroupWork = 60, kColumnGroupWork = 25;
constexpr double kLanes = 128;  // of a multiprocessor, per cycle
constexpr int kOwnRegisters = 32, kMostWords = 32, kMostSlots = 40 * 1024, kBlocks = 32;
// A run of adjacent bytes costs as if it were this much longer.
constexpr double kRunBytes = 13, kSector = 32;
// The share of the memory's rate that a kernel reaches, and what elements of groups without vectors
// cost, which falls with the root of a line's threads.
constexpr double kMemoryShare = 0.9, kScalarAccess = 40;

int words_of(const ScanFacts& facts, const ScanConfig& c) {
  return c.chunks * c.width * facts.state_bytes / 4;
}

// A block that goes on to the next tile has that one's elements as well.
int registers_of(const ScanFacts& facts, const ScanConfig& c) {
  return kOwnRegisters + (c.shared ? 1 : 2) * words_of(facts, c) + c.chunks * facts.state_bytes / 4;
}

bool fits(const ScanFacts& facts, const ScanConfig& c) {
  return registers_of(facts, c) * c.threads <= select::kRegistersOfMultiprocessor;
}

double resident_blocks(const ScanFacts& facts, const ScanConfig& c) {
  const int blocks = std::min(
      {select::kThreadsOfMultiprocessor / c.threads,
       select::kRegistersOfMultiprocessor / (registers_of(facts, c) * c.threads), kBlocks});
  return std::max(blocks, 1);
}

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ScanFacts scan_facts(StepBuilder& builder, const ScanForm& form) {
  ScanFacts facts;
  facts.columns = form.across != nullptr;
  facts.smallest = 4;
  facts.bytes = 0;
  facts.state_bytes = is_integer(form.state()) || form.state() == DType::Float64 ? 8 : 4;
  std::set<std::pair<int64_t, ir::Expr>> seen;
  const auto note = [&](int64_t value, ir::Expr offset) {
    if (!seen.insert({value, offset}).second) return;
    const auto bytes = static_cast<int>(size_of(builder.dtype_of(value)));
    if (offset->depends_on(form.axis)) facts.bytes += bytes;
    const auto affine = affine_in(builder.pool(), offset, form.inner());
    if (affine && affine->stride->is_constant(1)) {
      facts.smallest = std::max(1, std::min(facts.smallest, bytes));
    }
  };
  for (ir::Expr root : {form.element, form.body}) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) note(e->integer, e->args[0]);
    });
  }
  note(form.value, form.offset);
  return facts;
}

int64_t scan_tile(const ScanFacts& facts, const ScanConfig& c) {
  return facts.columns ? int64_t{1} * c.threads / c.team * c.chunks
                       : int64_t{1} * c.team * c.chunks * c.width;
}

int64_t scan_block_lines(const ScanFacts& facts, const ScanConfig& c) {
  return facts.columns ? int64_t{1} * c.team * c.width : c.threads / c.team;
}

int64_t scan_group(const ScanFacts& facts, const ScanConfig& c) {
  return facts.columns ? 8 * c.threads / c.team : 2 * c.threads;
}

int scan_slots(const ScanFacts& facts, const ScanConfig& c) {
  if (facts.columns) return 2 * c.threads * c.width;
  return c.team > 32 ? 2 * c.threads / 32 : 0;
}

int scan_static_bytes(const ScanFacts& facts, const ScanConfig& c) {
  constexpr int kPart = 16;  // kSlotBytes of src/device/reduce.cuh
  const int parts = c.shared && !facts.columns ? c.threads / 32 * kPart : 0;
  return scan_slots(facts, c) * facts.state_bytes + parts + (c.shared ? kPart : 0);
}

std::vector<ScanConfig> scan_configs(const ScanFacts& facts, const ScanSizes& sizes) {
  std::vector<ScanConfig> result;
  const auto push = [&](ScanConfig c) {
    if (words_of(facts, c) > kMostWords || scan_static_bytes(facts, c) > kMostSlots) return;
    const int64_t tile = scan_tile(facts, c);
    if (tile >= 4 * sizes.length && c.chunks > 1) return;
    if (fits(facts, c)) result.push_back(c);
    c.shared = true;
    const bool whole = facts.columns || c.team == c.threads;
    if (whole && c.threads >= 128 && up(sizes.length, tile) > 1 && fits(facts, c)) {
      result.push_back(c);
    }
  };
  const int widest = std::min(8, 16 / facts.smallest);
  if (!facts.columns) {
    for (int team = 4; team <= 1024; team *= 2) {
      for (int chunks = 1; chunks <= 4; chunks *= 2) {
        push({team, std::max(team, 128), chunks, widest});
      }
    }
    return result;
  }
  // Lines shorter than every tile of several elements a thread take one.
  for (int least = 2; result.empty() && least >= 1; --least) {
    for (int width = widest; width >= 1; width /= 2) {
      if (sizes.beside % width != 0) continue;
      for (int across = 2; across <= 32; across *= 2) {
        if (across > 2 && int64_t{across} * width >= 2 * sizes.beside) break;
        for (int threads = std::max(64, across); threads <= 512; threads *= 2) {
          if (threads / across > 32) break;
          for (int depth = least; depth <= 16; depth *= 2) push({across, threads, depth, width});
        }
      }
    }
  }
  return result;
}

double scan_time(const Target& target, const ScanFacts& facts, const ScanConfig& c,
                 const ScanSizes& sizes) {
  const double multiprocessors = target.multiprocessors;
  const int64_t tiles = std::max<int64_t>(up(sizes.length, scan_tile(facts, c)), 1);
  const int64_t strips = facts.columns ? sizes.lines * up(sizes.beside, scan_block_lines(facts, c))
                                       : up(sizes.lines, scan_block_lines(facts, c));
  const auto blocks = static_cast<double>(c.shared ? strips * tiles : strips);
  const auto elements = static_cast<double>(sizes.lines * sizes.beside * sizes.length);
  const auto padded = static_cast<double>(strips * scan_block_lines(facts, c) * tiles) *
                      static_cast<double>(scan_tile(facts, c));
  const double moved = elements * facts.bytes;
  const auto run = static_cast<double>(
      facts.columns ? std::min(scan_block_lines(facts, c), sizes.beside) * facts.smallest
                    : sizes.length * facts.smallest);
  const bool part = facts.columns && scan_block_lines(facts, c) < sizes.beside;
  const double waste = part ? std::ceil(run / kSector) * kSector / run : 1;
  const double memory =
      std::max(moved / (kMemoryShare * target.dram_rate) * (1 + (part ? kRunBytes / run : 0)),
               moved * waste / target.l2_rate());
  const double group_work = facts.columns ? kColumnGroupWork : kGroupWork;
  const bool scalar = !facts.columns && sizes.lines > 1 && sizes.length % c.width != 0;
  // Without vectors a thread's elements come one after the other from lines far apart.
  const double access = scalar ? std::max(1.0, kScalarAccess / std::sqrt(c.team)) : 1;
  const double work = padded * (kElementWork * access + group_work / c.width);
  const double busy = work / (kLanes * target.clock * multiprocessors);
  const double resident = resident_blocks(facts, c);
  const double turns = blocks / (resident * multiprocessors);
  const bool meets = facts.columns || c.team > 32;
  const double tile = kTileTime + (meets ? kMeetTime * std::log2(c.threads / 32.0 + 1) : 0);
  const double waiting = std::ceil(turns) * tile * static_cast<double>(c.shared ? 1 : tiles);
  // What is in flight on busy multiprocessors draws what memory gives; fewer of them draw less.
  const double used = std::min(1.0, blocks / multiprocessors);
  const double share = !c.shared ? 1 : facts.columns ? kSharedColumns : kSharedLines;
  const double time = select::kLaunchTime + kStartTime +
                      share * select::overlapped(std::max(memory, busy) / used, waiting);
  if (!c.shared) return time;
  const int64_t group = scan_group(facts, c);
  const double hops = kHopTime * static_cast<double>(up(tiles, group) - 1);
  // A tile reads what half of its group has published, in words of which half is data.
  const double published = 2.0 * facts.state_bytes * (facts.columns ? c.team * c.width : 1);
  const double read = blocks * static_cast<double>(std::min(tiles, group)) / 2 * published;
  return std::max(time, hops) + read / target.l2_rate() + select::kLaunchTime + kChainTime;
}

}  // namespace redfuser::codegen
