#include "codegen/integer_product/integer_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "select/by_time.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

constexpr IntegerShape kShapes[] = {
    {16, 32, 1, 1, 4, 128, 4},  {16, 64, 1, 1, 4, 128, 4}, {32, 64, 1, 2, 2, 128, 4},
    {64, 64, 2, 2, 1, 128, 3},  {64, 128, 2, 2, 1, 64, 4}, {128, 64, 2, 2, 1, 64, 4},
    {128, 128, 2, 2, 1, 64, 4},
};

double products_of(const IntegerForm& form) { return static_cast<double>(form.b.size()); }

// Sums of a thread.
int sums_of(const IntegerForm& form, const IntegerShape& shape) {
  return static_cast<int>(form.b.size()) * shape.rows * shape.columns /
         (32 * shape.row_warps * shape.column_warps);
}

}  // namespace

int integer_resident_blocks(const IntegerForm& form, const IntegerConfig& config,
                            const Target& target) {
  constexpr int kRegisters = 84;  // beside sums
  const IntegerShape& shape = config.shape();
  const int registers = (kRegisters + sums_of(form, shape)) * shape.threads();
  const int bytes = integer_shared_bytes(form, config) + kBlockReserved;
  return std::max(std::min(select::kRegistersOfMultiprocessor / registers,
                           (target.shared_bytes + kBlockReserved) / bytes),
                  1);
}

namespace {

// Bytes of a copy from the matrix: of one element where lines start anywhere.
int copy_width(const IntegerOperand& operand, const KnownSizes& sizes) {
  const int64_t pitch = sizes.of(operand.along() ? operand.line : operand.depth);
  if (!operand.along() && !operand.line->is_constant(1)) return 1;
  if (pitch < 0) return 16;
  return pitch % 16 == 0 ? 16 : pitch % 8 == 0 ? 8 : pitch % 4 == 0 ? 4 : 1;
}

// Microseconds of a stage of the ring, in `active` blocks of a multiprocessor: its products, its
// copies from L2, their instructions, its accesses of shared memory, or the wait for a copy.
double stage_time(const IntegerForm& form, const IntegerShape& shape, const IntegerSizes& sizes,
                  double active, const Target& target) {
  // Bytes that a multiprocessor loads, and reads or writes in shared memory, in a cycle; cycles
  // from a copy to its arrival, and of a copy's instructions.
  constexpr double kLoaded = 45, kShared = 128, kLatency = 1200, kCopy = 0.1;
  const double products = products_of(form), rows = shape.rows, columns = products * shape.columns;
  const double rate = target.warp_integer_rate() / target.multiprocessors;
  const double bytes = (rows + columns) * shape.depth;
  const double read = (shape.column_warps * rows + shape.row_warps * columns) * shape.depth;
  const double copies = (rows / sizes.a_width + columns / sizes.b_width) * shape.depth;
  return std::max({active * 2 * rows * columns * shape.depth / rate,
                   target.microseconds(active * copies * kCopy),
                   target.microseconds(active * bytes / kLoaded),
                   target.microseconds(active * (read + bytes) / kShared),
                   target.microseconds(kLatency / (shape.stages - 1))});
}

}  // namespace

IntegerConfig IntegerConfig::of(const KernelConfig& choice) {
  return {choice.at("rows"), choice.at("columns"), choice.at("blocks")};
}

const IntegerShape& IntegerConfig::shape() const {
  const auto* found = std::find_if(std::begin(kShapes), std::end(kShapes), [&](const auto& shape) {
    return shape.rows == rows && shape.columns == columns;
  });
  RF_CHECK(found != std::end(kShapes), "there are no tiles of {} by {} integers", rows, columns);
  return *found;
}

int integer_shared_bytes(const IntegerForm& form, const IntegerConfig& config) {
  const IntegerShape& shape = config.shape();
  const int columns = static_cast<int>(form.b.size()) * shape.columns;
  const int ring = shape.stages * (shape.rows + columns) * shape.depth;
  const int word = static_cast<int>(sizeof(int32_t));
  return std::max(ring, shape.rows * columns * word) + (shape.rows + columns) * word;
}

IntegerSizes integer_sizes(const IntegerForm& form, const KnownSizes& sizes) {
  const auto known = [&](ir::Expr size, double nominal) {
    const int64_t value = sizes.of(size);
    return value < 0 ? nominal : static_cast<double>(value);
  };
  return {known(form.batches, 1), known(form.m, 512),        known(form.n, 2048),
          known(form.k, 2048),    copy_width(form.a, sizes), copy_width(form.b[0], sizes)};
}

double integer_time(const IntegerForm& form, const IntegerConfig& config, const IntegerSizes& sizes,
                    const Target& target) {
  // Microseconds: of a kernel's start, first copies and end; of the exchange within a cluster.
  // Sums that a multiprocessor exchanges there, and results that it finishes, in a cycle; the share
  // of the bandwidth that copies reach.
  constexpr double kStart = 2.0, kExchange = 0.9, kExchanged = 3, kFinished = 12,
                   kMemoryShare = 0.75;
  const double batch = sizes.batch, m = sizes.m, n = sizes.n, k = sizes.k;
  const IntegerShape& shape = config.shape();
  const double products = products_of(form);
  const double blocks =
      batch * std::ceil(m / shape.rows) * std::ceil(n / shape.columns) * config.blocks;
  const double turns = std::ceil(blocks / target.multiprocessors);
  const double active = std::min<double>(integer_resident_blocks(form, config, target), turns);
  const double steps = std::ceil(std::ceil(k / shape.depth) / config.blocks);
  const double sums = active * products * shape.rows * shape.columns;
  const double finish = target.microseconds(sums / config.blocks / kFinished +
                                            (config.blocks > 1 ? sums / kExchanged : 0));
  const double work = std::ceil(turns / std::max(active, 1.0)) *
                      (steps * stage_time(form, shape, sizes, active, target) + finish);
  const double result = static_cast<double>(size_of(form.epilogue->dtype));
  const double bytes = batch * (m * k + products * n * k + m * n * result);
  return select::kLaunchTime + kStart + (config.blocks > 1 ? kExchange : 0) +
         select::overlapped(work, bytes / (kMemoryShare * target.dram_rate));
}

std::vector<Candidate> integer_choices(const IntegerForm& form, const IntegerSizes& sizes,
                                       const Target& target) {
  constexpr int kMostSums = 128, kLargestCluster = 8;
  std::vector<Candidate> choices;
  const bool clusters = target.architecture >= 90 && !target.portable;
  for (const IntegerShape& shape : kShapes) {
    if (sums_of(form, shape) > kMostSums) continue;
    for (int blocks = 1; blocks <= (clusters ? kLargestCluster : 1); blocks *= 2) {
      const IntegerConfig config{shape.rows, shape.columns, blocks};
      if (integer_shared_bytes(form, config) > target.shared_bytes) continue;
      // A block without a stage has nothing to do.
      if (blocks > 1 && sizes.k <= shape.depth * (blocks - 1)) continue;
      choices.push_back({{kIntegerProductFamily, config.parameters()},
                         integer_time(form, config, sizes, target)});
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
