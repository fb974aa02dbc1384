#include "codegen/product/thin_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redfuser::codegen {
namespace {

// A thread's loads of 16 bytes that are in flight.
constexpr int kLoads = 16;

bool is_tensor(const ThinForm& form) { return size_of(form.dtype) == 2; }

int step_of(const ThinForm& form) { return is_tensor(form) && form.along() ? 32 : 16; }

int loads_of(const ThinForm& form) { return thin_wide(form) * step_of(form) / (32 * form.width()); }

double known(ir::Expr size, const KnownSizes& sizes) { return static_cast<double>(sizes.of(size)); }

}  // namespace

ThinConfig thin_config(const KernelConfig& choice) {
  return {choice.at("lines"), choice.at("warps"), choice.at("blocks")};
}

int thin_wide(const ThinForm& form) { return is_tensor(form) ? 64 : 32; }

int thin_step(const ThinForm& form) {
  const int products = static_cast<int>(form.wide.size());
  return step_of(form) * std::max(kLoads / (loads_of(form) * products), 1);
}

int thin_static_bytes(const ThinForm& form, const ThinConfig& config) {
  constexpr int kPadding = 2;
  const int group = std::min(config.lines, 8), wide = thin_wide(form);
  const int parts = config.warps * group * (wide + kPadding);
  const int products = static_cast<int>(form.wide.size());
  const int sums = (config.blocks > 1 ? products * config.lines / group : 1) * group * wide;
  return (parts + sums) * static_cast<int>(sizeof(float));
}

std::vector<ThinClass> thin_classes(ir::ExprPool& pool, const ThinForm& form) {
  std::vector<ThinClass> classes;
  int below = 0;
  for (int padded = is_tensor(form) ? 8 : 1; padded <= kMostThinLines; padded *= 2) {
    const auto at_most = [&](int count) {
      return pool.make(ir::ExprOp::LessEqual, {form.lines, pool.integer(count)});
    };
    const ir::Expr more = pool.make(ir::ExprOp::Not, {at_most(below)});
    const ir::Expr when = pool.make(ir::ExprOp::And, {at_most(padded), more});
    if (!when->is_constant(0)) classes.push_back({padded, when});
    below = padded;
  }
  return classes;
}

namespace {

// Sums of a thread.
int sums_of(const ThinForm& form, int lines) {
  return (is_tensor(form) ? 2 : 4) * lines * static_cast<int>(form.wide.size());
}

// Blocks of which a multiprocessor runs at once, by the registers of their threads.
double resident_blocks(const ThinForm& form, const ThinConfig& config) {
  constexpr int kRegisters = 72;  // beside sums
  const int registers = kRegisters + sums_of(form, config.lines);
  const int threads = 32 * config.warps;
  return std::max(select::kRegistersOfMultiprocessor / (registers * threads), 1);
}

// Fewer blocks than half of the multiprocessors.
bool is_small(const ThinForm& form, const ThinConfig& config, const KnownSizes& sizes,
              const Target& target) {
  return 2 * known(form.batch, sizes) * std::ceil(known(form.extent, sizes) / thin_wide(form)) *
             config.blocks <
         target.multiprocessors;
}

// Whether 16-byte loads have neither end inside, as far as sizes tell.
bool is_vector(const ThinForm& form, const KnownSizes& sizes) {
  const int width = form.width();
  return sizes.of(form.depth) % width == 0 && (form.along() || sizes.of(form.extent) % width == 0);
}

}  // namespace

// Constants are fitted to products of 1 to 16 lines on an H200.
double thin_time(const ThinForm& form, const ThinConfig& config, double lines,
                 const KnownSizes& sizes, const Target& target) {
  // Microseconds: of a kernel's start and end; of the exchange within a cluster; of a warp's loads
  // in flight, to which those of each thin line add a share; of a warp of a multiprocessor and its
  // sums, to which every further block of the cluster adds a share.
  constexpr double kStart = 1.2, kExchange = 0.9, kTurn = 1.07, kThinShare = 0.11, kWarp = 0.05,
                   kBlockShare = 0.19;
  constexpr double kSingleLoads = 5.5, kMemoryShare = 0.73, kScalarMemoryShare = 0.62;
  const double batch = known(form.batch, sizes), extent = known(form.extent, sizes),
               depth = known(form.depth, sizes);
  if (batch <= 0 || extent <= 0 || depth <= 0) return HUGE_VAL;
  const auto bytes = static_cast<double>(size_of(form.dtype));
  const auto products = static_cast<double>(form.wide.size());
  const double blocks = batch * std::ceil(extent / thin_wide(form)) * config.blocks;
  const double waves = std::ceil(blocks / (resident_blocks(form, config) * target.multiprocessors));
  const double turns = std::ceil(std::ceil(depth / thin_step(form)) /
                                 (static_cast<double>(config.warps) * config.blocks));
  const double turn = kTurn * (1 + kThinShare * config.lines / products) *
                      (is_vector(form, sizes) ? 1 : kSingleLoads);
  const double elements = products * extent * depth + lines * depth + products * extent * lines;
  const double memory = batch * bytes * elements /
                        ((is_tensor(form) ? kMemoryShare : kScalarMemoryShare) * target.dram_rate);
  const double warps = blocks * config.warps / target.multiprocessors;
  const double groups = products * std::max(config.lines / 8, 1);
  return select::kLaunchTime + kStart + std::hypot(memory, waves * turns * turn) +
         (config.blocks > 1 ? kExchange : 0) +
         kWarp * warps * groups * (1 + kBlockShare * (config.blocks - 1));
}

std::vector<Candidate> thin_choices(const ThinForm& form, int padded, double lines,
                                    const KnownSizes& sizes, const Target& target) {
  // More sums spill beside the loads.
  constexpr int kStaticBytes = 48 << 10, kMostWarps = 32, kMostSums = 64;
  std::vector<Candidate> choices;
  if (sums_of(form, padded) > kMostSums) return choices;
  const int most = target.architecture >= 90 && !target.portable ? 8 : 1;
  for (int blocks = 1; blocks <= most; blocks *= 2) {
    for (const int warps : {4, 8}) {
      const ThinConfig config{padded, warps, blocks};
      if (warps * blocks > kMostWarps && !is_small(form, config, sizes, target)) continue;
      const double time = thin_time(form, config, lines, sizes, target);
      if (time == HUGE_VAL || thin_static_bytes(form, config) > kStaticBytes) continue;
      choices.push_back({{kThinProductFamily, config.parameters()}, time});
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  return choices;
}

}  // namespace redfuser::codegen
