#include "codegen/convolution/convolution_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "select/by_time.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

constexpr ConvolutionShape kShapes[] = {
    {64, 32, 2, 1, 8, 4, {136, 168}},  {64, 64, 2, 2, 8, 4, {114, 168}},
    {128, 32, 4, 1, 4, 4, {112, 160}}, {64, 128, 2, 2, 8, 3, {160, 232}},
    {128, 64, 2, 2, 8, 3, {168, 232}}, {128, 128, 2, 4, 8, 3, {128, 208}},
};

}  // namespace

int ConvolutionShape::shared_bytes() const {
  const int ring = stages * (positions + filters) * pieces * 16;
  return std::max(ring, positions * (filters + 8) * static_cast<int>(sizeof(float)));
}

int ConvolutionShape::resident(const Target& target, int parts, int spatial) const {
  constexpr int kUnit = 8;  // registers are given in multiples
  // A thread copies pieces of so many rows, and has the plane of each.
  const int planes = spatial == 3 ? positions * pieces / threads() : 0;
  const int each = (registers[parts - 1] + planes + kUnit - 1) / kUnit * kUnit * threads();
  return std::max(
      std::min(select::kRegistersOfMultiprocessor / each,
               (target.shared_bytes + kBlockReserved) / (shared_bytes() + kBlockReserved)),
      1);
}

ConvolutionConfig ConvolutionConfig::of(const KernelConfig& choice) {
  return {choice.at("positions"), choice.at("filters"), choice.at("blocks")};
}

const ConvolutionShape& ConvolutionConfig::shape() const {
  const auto* found = std::find_if(std::begin(kShapes), std::end(kShapes), [&](const auto& shape) {
    return shape.positions == positions && shape.filters == filters;
  });
  RF_CHECK(found != std::end(kShapes), "there are no tiles of {} positions and {} filters",
           positions, filters);
  return *found;
}

ConvolutionCounts convolution_counts(ir::ExprPool& pool, const ConvolutionForm& form,
                                     const KnownSizes& sizes) {
  const auto known = [&](ir::Expr size, double nominal) {
    const int64_t value = sizes.of(size);
    return value < 0 ? nominal : static_cast<double>(value);
  };
  ConvolutionCounts counts;
  counts.dtype = form.dtype;
  counts.parts = form.parts;
  counts.spatial = form.spatial;
  counts.groups = static_cast<double>(form.groups);
  counts.positions = known(form.positions(pool), 8192);
  counts.filters = known(form.filters, 128);
  counts.depth = known(form.depth(pool), 1024);
  ir::Expr places = pool.mul(pool.mul(form.batch, form.planes), pool.mul(form.height, form.width));
  const double input = known(places, counts.positions) * known(form.pitch, 128);
  counts.bytes = static_cast<double>(size_of(form.dtype)) *
                 (input + counts.groups * counts.filters * (counts.depth + counts.positions));
  return counts;
}

ConvolutionCounts ConvolutionCounts::with_positions(double count) const {
  ConvolutionCounts counts = *this;
  const double weights = static_cast<double>(size_of(dtype)) * groups * filters * depth;
  counts.positions = count;
  counts.bytes = weights + (bytes - weights) * count / std::max(positions, 1.0);
  return counts;
}

namespace {

// Of products of operands: TF32 has half the rate of 16 bits, and two parts have three products.
double multiply_rate(const ConvolutionCounts& counts, const Target& target) {
  const double rate = target.warp_tensor_rate();
  return size_of(counts.dtype) == 2 ? rate : rate / (2 * (2 * counts.parts - 1));
}

}  // namespace

double convolution_time(const ConvolutionConfig& config, const ConvolutionCounts& counts,
                        const Target& target) {
  // Cycles: from a block's start to its first products, of a stage beside them, of the exchange
  // within a cluster. The share of the rate of single warps' instructions; results that a
  // multiprocessor finishes in a cycle; the share of the bandwidth that copies reach.
  constexpr double kStart = 2500, kStage = 400, kExchange = 2000, kShare = 0.77, kFinished = 4,
                   kMemoryShare = 0.75;
  const ConvolutionShape& shape = config.shape();
  const double tiles = counts.groups * std::ceil(counts.positions / shape.positions) *
                       std::ceil(counts.filters / shape.filters);
  const int depth = shape.depth(counts.dtype);
  const double turns = std::ceil(tiles * config.blocks / target.multiprocessors);
  const double active =
      std::min<double>(shape.resident(target, counts.parts, counts.spatial), turns);
  const double steps = std::ceil(std::ceil(counts.depth / depth) / config.blocks);
  const double elements = active * shape.positions * shape.filters;
  const double rate = kShare * multiply_rate(counts, target) / target.multiprocessors;
  const double stage = target.microseconds(kStage) + 2 * elements * depth / rate;
  // Blocks of a cluster read the sums of all of them.
  const double finish =
      target.microseconds(elements / kFinished + (config.blocks > 1 ? kExchange + elements : 0));
  const double round = target.microseconds(kStart) + steps * stage + finish;
  const double work = std::ceil(turns / active) * round;
  return select::kLaunchTime +
         select::overlapped(work, counts.bytes / (kMemoryShare * target.dram_rate));
}

std::vector<Candidate> convolution_choices(const ConvolutionCounts& counts, const Target& target) {
  constexpr int kLargestCluster = 8;
  std::vector<Candidate> choices;
  const bool clusters = target.architecture >= 90 && !target.portable;
  for (const ConvolutionShape& shape : kShapes) {
    if (shape.shared_bytes() > target.shared_bytes) continue;
    for (int blocks = 1; blocks <= (clusters ? kLargestCluster : 1); blocks *= 2) {
      // A block without a stage has nothing to do.
      if (blocks > 1 && counts.depth <= shape.depth(counts.dtype) * (blocks - 1)) continue;
      const ConvolutionConfig config{shape.positions, shape.filters, blocks};
      choices.push_back(
          {{kConvolutionFamily, config.parameters()}, convolution_time(config, counts, target)});
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
