// The launch of a kernel that folds rows into states and merges these.
#include "codegen/rows/single_pass.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/rows/row_functor.h"
#include "codegen/rows/single_pass_cost.h"

namespace redfuser::codegen {
namespace {

using Part = SinglePassConfig::Part;

// Registers per thread that suffice for rows in shared memory, and registers of an SM.
constexpr int kRegisters = 40, kAllRegisters = 65536;
constexpr int kWideBlock = 512, kWideRegisters = 64;
// Dynamic shared memory is aligned to a line of all banks.
constexpr int kSharedAlignment = 128;

// Every tile is full in all lanes.
bool fills(const FlatStreaming& form, const SinglePassConfig& config) {
  ir::Expr length = form.length();
  return length->is_constant() && length->integer % tile_elements(config) == 0;
}

bool by_block(const SinglePassConfig& config) { return config.lanes > 32; }

// As many as shared memory allows. Blocks that ptxas would give fewer registers than they need, for
// more blocks at once, get kWideRegisters.
int min_blocks(const SinglePassConfig& config, int shared, int all_shared) {
  if (!by_block(config)) return 0;
  if (config.shared) {
    return std::min(all_shared / (shared + kBlockReserved),
                    kAllRegisters / (kRegisters * config.threads));
  }
  const bool wide = config.threads == kWideBlock && !config.whole;
  if (!wide && config.part != Part::Partials) return 0;
  return kAllRegisters / (kWideRegisters * config.threads);
}

ir::Expr grid_of(ir::ExprPool& pool, const FlatStreaming& form, const SinglePassConfig& config) {
  ir::Expr rows = product_of(pool, extents_of(pool, form.cascade.rows));
  if (!by_block(config)) return ceil_div(pool, rows, config.threads / config.lanes);
  if (config.part == Part::Row) return pool.mul(rows, pool.integer(config.cluster));
  ir::Expr grid = pool.mul(rows, segments_of(pool, form, config));
  if (config.part != Part::Segment) return grid;
  // With more rows than counters, rows are too long for any memory wherever segments are chosen.
  ir::Expr counted = pool.make(ir::ExprOp::LessEqual, {rows, pool.integer(kLaunchCounters)});
  return pool.select(counted, grid, pool.integer(std::numeric_limits<int64_t>::max()));
}

std::string states_text(KernelText& kernel, const SinglePassConfig& config, int64_t states) {
  if (config.part == Part::Row) return "nullptr";
  if (config.part == Part::Finish) {
    return fmt::format("const_cast<State*>(reinterpret_cast<const State*>({}))",
                       kernel.buffer(states));
  }
  return fmt::format("reinterpret_cast<State*>({})", kernel.buffer(states, true));
}

}  // namespace

const char* part_name(Part part) {
  switch (part) {
    case Part::Row:
      return "Row";
    case Part::Segment:
      return "Segment";
    case Part::Partials:
      return "Partials";
    case Part::Finish:
      return "Finish";
  }
  return "";
}

std::string part_family(const char* kind, Part part, int cluster, bool whole) {
  const auto named = [&](const char* name) { return fmt::format("{}_{}", kind, name); };
  switch (part) {
    case Part::Row:
      return named(cluster > 1 ? "cluster" : whole ? "resident" : "streaming");
    case Part::Segment:
      return named("segments");
    case Part::Partials:
      return named("partials");
    case Part::Finish:
      return named("finish");
  }
  return "";
}

ir::Expr segments_of(ir::ExprPool& pool, const FlatStreaming& form,
                     const SinglePassConfig& config) {
  ir::Expr last = pool.sub(config.segment, pool.integer(1));
  return pool.floordiv(pool.add(form.length(), last), config.segment);
}

int single_pass_static_bytes(const SinglePassConfig& config, int64_t state_bytes,
                             int staging_words) {
  constexpr int kCounted = 8, kBarrier = 8;  // in each of the two variants of the body
  const int warps = config.threads / 32;
  int64_t bytes = int64_t{warps} * RowReads::kStagingVectors * staging_words * 16;
  // Padding before the aligned arrays.
  if (staging_words > 0) bytes += kSharedAlignment;
  if (config.lanes > 32) bytes += warps * state_bytes;
  if (config.part == Part::Segment) bytes += kCounted;
  if (config.cluster > 1) bytes += config.cluster * state_bytes + kBarrier;
  return static_cast<int>((bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment);
}

std::string row_config(const FlatStreaming& form, const SinglePassConfig& config, bool vectors) {
  return fmt::format(
      "struct Config {{\n"
      "static constexpr int kLanes = {}, kThreads = {}, kChunks = {}, kCluster = {};\n"
      "static constexpr bool kWhole = {}, kShared = {}, kFull = {}, kVectors = {};\n"
      "static constexpr RowPart kPart = RowPart::{};\n}};\n",
      config.lanes, config.threads, config.chunks, config.cluster, config.whole, config.shared,
      fills(form, config), vectors, part_name(config.part));
}

std::string row_memory(const SinglePassConfig& config, int64_t state_bytes, int staging_words,
                       const std::string& slots) {
  const int warps = config.threads / 32;
  std::string text;
  const bool has_slots = by_block(config) && state_bytes > 0;
  if (has_slots) text += fmt::format("__shared__ State {}[{}];\n", slots, warps);
  if (staging_words > 0) {
    text += fmt::format("__shared__ __align__(128) uint4 staging[{}][{}];\n", warps,
                        RowReads::kStagingVectors * staging_words);
  }
  std::string exchange = "void";
  if (config.cluster > 1) {
    exchange = fmt::format("ClusterExchange<State, {}>", config.cluster);
    text += fmt::format("__shared__ {} exchange;\n", exchange);
  }
  return text + fmt::format("const RowMemory<State, {}> memory{{{}, {}, {}}};\n", exchange,
                            has_slots ? slots : "nullptr",
                            staging_words > 0 ? "staging[threadIdx.x >> 5]" : "nullptr",
                            config.cluster > 1 ? "&exchange" : "nullptr");
}

KernelLaunch single_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                                const SinglePassConfig& config, int64_t states) {
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  // The finish of segments is slower so, and rows of clusters are long beside a launch.
  if (states < 0 && config.cluster == 1) kernel.start_early();
  RowFunctor functor(kernel, form, form, config, rounds_smoothly(builder, form));
  const std::string text = functor.text();
  // Outputs and reads are members; the other parameters are arguments of the main loop alone.
  const std::string values = kernel.member_values(), vector = functor.vector_condition();
  const RowReads& reads = functor.reads();
  const std::string body = fmt::format(
      "{}const Form form{{{}}};\nfold_rows<Config>(form, memory, {}, {}, {}, {}, {}, {});\n",
      row_memory(config, state_bytes(form), reads.staging_words()), values,
      kernel.size(product_of(pool, extents_of(pool, form.cascade.rows))),
      kernel.size(form.length()), config.segment ? kernel.size(config.segment) : "0",
      states_text(kernel, config, states),
      config.part == Part::Segment ? kernel.counter() : "nullptr", vector);
  const std::string before = row_config(form, config, vector != "false") + text;
  const int shared = config.shared ? reads.shared_bytes() : 0;
  const int fixed = single_pass_static_bytes(config, state_bytes(form), reads.staging_words());
  KernelLaunch launch = kernel.launch(
      part_family("row", config.part, config.cluster, config.whole), form.comment,
      {"device/row_fold.cuh"}, before, body, config.threads,
      min_blocks(config, shared + fixed, builder.target.shared_bytes + kBlockReserved));
  launch.config = config.parameters();
  launch.cluster = config.cluster;
  launch.shared = shared;
  launch.static_shared = fixed;
  launch.grid[0] = grid_of(pool, form, config);
  return launch;
}

}  // namespace redfuser::codegen
