#include "codegen/product/thin_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

// A thread's loads of 16 bytes that are in flight, beside few sums and many.
constexpr int kLoads = 16, kFewLoads = 8;

bool is_tensor(const ThinForm& form) { return size_of(form.dtype) == 2; }

int step_of(const ThinForm& form) {
  if (!form.coded.empty()) return 512 / form.bits();
  return is_tensor(form) && form.along() ? 32 : 16;
}

// Sums of a thread.
int sums_of(const ThinForm& form, const ThinConfig& config) {
  const int products = static_cast<int>(form.wide.size());
  return (is_tensor(form) ? config.wide * config.lines / 32 : 4 * config.lines) * products;
}

// A thread's loads of a step of all products.
int loads_of(const ThinForm& form, int wide) {
  if (!form.coded.empty()) return wide / 8 * static_cast<int>(form.wide.size());
  return wide * step_of(form) / (32 * form.width()) * static_cast<int>(form.wide.size());
}

double known(ir::Expr size, const KnownSizes& sizes) { return static_cast<double>(sizes.of(size)); }

}  // namespace

static bool has_bits(const KernelConfig& choice) {
  return std::any_of(choice.parameters.begin(), choice.parameters.end(),
                     [](const auto& parameter) { return parameter.first == "bits"; });
}

ThinConfig thin_config(const KernelConfig& choice) {
  return {choice.at("lines"), choice.at("wide"), choice.at("warps"), choice.at("blocks"),
          has_bits(choice) ? choice.at("bits") : 0};
}

bool reads_codes(const KernelConfig& choice) {
  return choice.family == kThinProductFamily && has_bits(choice);
}

int thin_ahead(const ThinForm& form, const ThinConfig& config) {
  const int stages = is_tensor(form) ? 2 : 1;
  if (!form.coded.empty()) return stages * step_of(form);
  const int wanted =
      (sums_of(form, config) > (is_tensor(form) ? 32 : 16) ? kFewLoads : kLoads) / stages;
  return stages * step_of(form) * std::max(wanted / loads_of(form, config.wide), 1);
}

int thin_static_bytes(const ThinForm& form, const ThinConfig& config) {
  constexpr int kPadding = 2;
  constexpr int kBarrier = 8;
  const int group = std::min(config.lines, 8);
  const int parts = config.warps * group * (config.wide + kPadding);
  const int products = static_cast<int>(form.wide.size());
  const int share = config.blocks > 1 ? config.lines * config.wide / config.blocks : 1;
  const int floats = parts + config.blocks * products * share;
  return (floats + floats % 2) * static_cast<int>(sizeof(float)) + kBarrier;
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

// Blocks that a GPU runs at once. Registers and groups of multiprocessors that clusters do not
// cross are as measured on an H200.
double resident_blocks(const ThinForm& form, const ThinConfig& config, const Target& target) {
  constexpr double kRegisters = 95, kRegistersOfSum = 1.4;  // of a thread
  constexpr double kQuads = 0.91, kOctets = 0.88;  // multiprocessors that clusters of 4 and 8 fill
  const double registers = kRegisters + kRegistersOfSum * sums_of(form, config);
  const double blocks =
      std::floor(select::kRegistersOfMultiprocessor / (registers * 32 * config.warps));
  const double share = config.blocks < 4 ? 1 : config.blocks < 8 ? kQuads : kOctets;
  return std::max(blocks, 1.0) * std::floor(share * target.multiprocessors);
}

// Fewer blocks than half of the multiprocessors.
bool is_small(const ThinForm& form, const ThinConfig& config, const KnownSizes& sizes,
              const Target& target) {
  return 2 * known(form.batch, sizes) * std::ceil(known(form.extent, sizes) / config.wide) *
             config.blocks <
         target.multiprocessors;
}

// Whether 16-byte loads have neither end inside, as far as sizes tell.
bool is_vector(const ThinForm& form, const KnownSizes& sizes) {
  const int width = form.width();
  return sizes.of(form.depth) % width == 0 && (form.along() || sizes.of(form.extent) % width == 0);
}

// Lines of a wide matrix that a block may multiply.
std::vector<int> wides_of(const ThinForm& form, int lines) {
  constexpr int kMostLoads = 8, kMostLines = 8;  // more spill
  if (!is_tensor(form)) return {32};
  // A load with two scales needs more registers.
  if (!form.coded.empty() && form.block() * form.bits() < 128) return {16};
  if (!form.coded.empty()) return {16, 32};
  if (!form.along()) return {64};
  if (loads_of(form, 64) > kMostLoads || lines > kMostLines) return {16, 32};
  return {16, 32, 64};
}

// Bytes of an element of the wide matrices, with its share of a scale and of a zero point.
double wide_bytes(const ThinForm& form) {
  const double own = form.bits() / 8.0;
  if (form.coded.empty()) return own;
  const double factors =
      static_cast<double>(size_of(form.dtype)) + (form.coded[0].codes->zeros.defined() ? 1 : 0);
  return own + factors / static_cast<double>(form.block());
}

}  // namespace

// Constants are fitted to products of 1 to 16 lines on an H200.
double thin_time(const ThinForm& form, const ThinConfig& config, double lines,
                 const KnownSizes& sizes, const Target& target) {
  // Microseconds: of a kernel's start and end; of the exchange within a cluster; of a warp's loads
  // in flight, to which those of each thin line add a share; of adding a warp's sums; of a warp of
  // a multiprocessor, to which every further block of the cluster adds a share.
  constexpr double kStart = 1.4, kExchange = 0.77, kTurn = 0.4, kThinShare = 0.04, kSum = 0.17,
                   kWarp = 0.011, kBlockShare = 0.46;
  // Thin elements that are loaded one by one: a factor of a turn; what a multiprocessor
  // takes for a warp's step, and for that of each thin line on the scalar units.
  constexpr double kSingleThinLoads = 3.1, kSingleStep = 0.2, kScalarSingleStep = 0.042;
  constexpr double kMemoryShare = 0.82, kScalarMemoryShare = 0.77;
  // Turns overlap a little with other warps' memory accesses.
  constexpr double kOverlap = 1.2;
  // A launch that reads constants while the one before it still runs, and lets the next one do so,
  // beside one of the library: chains of products of 1 to 16 lines, on an H100.
  constexpr double kPrefetched = 4.5;
  // Of codes, on an H100: a turn, and what each of its loads adds; instructions that make an
  // element; a doubling of the cluster; a warp of a multiprocessor.
  constexpr double kCodeTurn = 0.2, kCodeLoad = 0.3, kDecode = 3, kCodeExchange = 0.3,
                   kCodeWarp = 0.05;
  const bool coded = !form.coded.empty();
  const double batch = known(form.batch, sizes), extent = known(form.extent, sizes),
               depth = known(form.depth, sizes);
  if (batch <= 0 || extent <= 0 || depth <= 0) return HUGE_VAL;
  const auto bytes = static_cast<double>(size_of(form.dtype));
  const auto products = static_cast<double>(form.wide.size());
  const double blocks = batch * std::ceil(extent / config.wide) * config.blocks;
  const double waves = std::ceil(blocks / resident_blocks(form, config, target));
  const bool vector = is_vector(form, sizes) || !is_tensor(form);
  const double ahead = vector ? thin_ahead(form, config) : 2 * step_of(form);
  const double turns =
      std::ceil(std::ceil(depth / ahead) / (static_cast<double>(config.warps) * config.blocks));
  // Loads of single elements take as long as there are.
  const double single = vector ? 1 : loads_of(form, config.wide) / 2.0;
  const double own = coded ? kCodeTurn + kCodeLoad * loads_of(form, config.wide) : kTurn * single;
  const double steps = std::ceil(depth / step_of(form));
  const bool single_thin = !form.thin.depth->is_constant(1);
  // Scalar units load no elements that a short depth lacks.
  const double filled =
      is_tensor(form) ? 1 : std::min(depth / (ahead * config.warps * config.blocks), 1.0);
  const double singles = single_thin ? 1 + (kSingleThinLoads - 1) * filled : 1;
  const double turn = own * (1 + kThinShare * config.lines / products) * singles;
  const double step_time = is_tensor(form) ? kSingleStep : kScalarSingleStep * config.lines;
  const double taken = !coded && single_thin ? step_time * batch * std::ceil(extent / config.wide) *
                                                   steps / target.multiprocessors
                                             : 0;
  const double wide = products * extent * depth;
  const double moved =
      wide * wide_bytes(form) + bytes * (lines * depth + products * extent * lines);
  const double memory =
      batch * moved / ((is_tensor(form) ? kMemoryShare : kScalarMemoryShare) * target.dram_rate);
  const double decoded =
      coded ? kDecode * wide / (select::kLanes * target.clock * target.multiprocessors) : 0;
  const double loaded =
      std::pow(std::pow(memory, kOverlap) +
                   std::pow(std::max(waves * turns * turn, taken) + decoded, kOverlap),
               1 / kOverlap);
  const double saved = form.given && target.starts_early() ? kPrefetched : 0;
  const double groups = std::max(config.lines / 8, 1);
  const double warps = blocks * config.warps / target.multiprocessors;
  const double exchange = config.blocks == 1 ? 0
                          : coded            ? kCodeExchange * std::log2(config.blocks)
                                             : kExchange;
  // Elements whose epilogue a multiprocessor computes in a microsecond for few columns of fp32,
  // where threads have one row each.
  constexpr double kFinished = 595;
  const EpilogueWork& work = form.epilogue;
  const double finish = form.columns && form.dtype == DType::Float32
                            ? batch * extent * lines * (work.lines + work.elements) /
                                  (kFinished * target.multiprocessors)
                            : 0;
  return select::kLaunchTime - saved + kStart + loaded + exchange + finish +
         kSum * config.warps * groups +
         (coded ? kCodeWarp : kWarp) * warps * products * groups *
             (1 + kBlockShare * (config.blocks - 1));
}

std::vector<Candidate> thin_choices(const ThinForm& form, int padded, double lines,
                                    const KnownSizes& sizes, const Target& target) {
  // More sums spill beside the loads.
  constexpr int kStaticBytes = 48 << 10, kMostWarps = 32, kMostSums = 64;
  const int bits = form.coded.empty() ? 0 : form.bits();
  std::vector<Candidate> choices;
  const int most = target.architecture >= 90 && !target.portable ? 8 : 1;
  for (const int wide : wides_of(form, padded)) {
    for (int blocks = 1; blocks <= most; blocks *= 2) {
      for (const int warps : {4, 8}) {
        const ThinConfig config{padded, wide, warps, blocks, bits};
        if (sums_of(form, config) > kMostSums) continue;
        if (warps * blocks > kMostWarps && !is_small(form, config, sizes, target)) continue;
        const double time = thin_time(form, config, lines, sizes, target);
        if (time == HUGE_VAL || thin_static_bytes(form, config) > kStaticBytes) continue;
        choices.push_back({{kThinProductFamily, config.parameters()}, time});
      }
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
