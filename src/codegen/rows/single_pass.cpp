// The text of a kernel that folds rows into states and merges these.
#include "codegen/rows/single_pass.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/rows/single_pass_body.h"
#include "codegen/rows/state_struct.h"
#include "codegen/rows/vector_loads.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

using Part = SinglePassConfig::Part;

// Registers per thread that suffice for rows in shared memory, and registers of an SM.
constexpr int kRegisters = 40, kAllRegisters = 65536;
constexpr int kWideBlock = 512;
// Dynamic shared memory is aligned to a line of all banks.
constexpr int kSharedAlignment = 128;

class SinglePassText {
 public:
  SinglePassText(StepBuilder& builder, const FlatStreaming& form, const SinglePassConfig& config,
                 int64_t states)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        all_shared_(builder.target.shared_bytes + kBlockReserved),
        states_(states),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        reads_(kernel_, form, config),
        state_(emitter_, form, config_),
        passes_(kernel_, emitter_, form, config_, reads_, state_) {
    emitter_.set_fast_math(rounds_smoothly(builder, form));
  }

  KernelLaunch launch() {
    length_ = kernel_.size(form_.length());
    place();
    reads_.declare(emitter_);
    state_.define();
    emitter_.line("State s = identity();");
    if (config_.part == Part::Finish) {
      state_.merge_segments(kernel_.buffer(states_));
    } else {
      passes_.fold();
      state_.merge_block();
    }
    if (config_.part == Part::Partials) {
      store_state();
    } else {
      if (config_.part == Part::Segment) merge_last();
      finish();
      write_row_outputs(emitter_, kernel_, form_, config_.lanes * config_.cluster);
      passes_.write_outputs();
    }
    return launch_of(emitter_.close());
  }

 private:
  void store_state() {
    emitter_.line(
        fmt::format("if (threadIdx.x == 0) reinterpret_cast<State*>({})[row * segments + part] = "
                    "s;",
                    kernel_.buffer(states_, true)));
  }

  // The block that counts last merges the states that the others stored.
  void merge_last() {
    emitter_.open();
    store_state();
    emitter_.line(
        fmt::format("__shared__ unsigned before;\n"
                    "if (threadIdx.x == 0) before = ptx_count({} + row, segments - 1);\n"
                    "__syncthreads();\nif (before != segments - 1) return;",
                    kernel_.counter()));
    state_.merge_segments(kernel_.buffer(states_));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("if (segments > 1) {{\n{}}}", text));
  }

  int warps() const { return config_.threads / 32; }
  int static_bytes() const {
    return single_pass_static_bytes(config_, state_bytes(form_), reads_.staging_words());
  }
  bool by_block() const { return config_.lanes > 32; }

  KernelLaunch launch_of(const std::string& body) {
    const std::string vector = reads_.vector_condition();
    std::string text = fmt::format("constexpr bool kVector = false;\n{}", body);
    if (!vector.starts_with("false")) {
      text = fmt::format("if ({}) {{\nconstexpr bool kVector = true;\n{}}} else {{\n{}}}\n", vector,
                         body, text);
    }
    std::string before;
    if (by_block()) before += fmt::format("__shared__ State slots[{}];\n", warps());
    if (config_.shared) {
      before +=
          fmt::format("extern __shared__ __align__({}) uint4 tile_smem[];\n", kSharedAlignment);
    }
    before += reads_.declare_staging();
    if (config_.cluster > 1) {
      before += fmt::format(
          "__shared__ ClusterExchange<State, {}> cluster_states;\ncluster_states.open();\n",
          config_.cluster);
    }
    std::vector<std::string_view> headers = {"ptx", "math", "types", "reduce", "rows"};
    if (config_.part == Part::Segment) headers.insert(headers.begin() + 1, "ptx_split");
    if (config_.cluster > 1) headers.insert(headers.end(), {"ptx_barrier", "cluster_exchange"});
    KernelLaunch launch = kernel_.launch(name(), form_.comment, headers, state_.declaration(),
                                         before + text, config_.threads, min_blocks());
    launch.config = config_.parameters();
    launch.cluster = config_.cluster;
    launch.shared = config_.shared ? reads_.shared_bytes() : 0;
    launch.static_shared = static_bytes();
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.cascade.rows));
    if (!by_block()) {
      launch.grid[0] = ceil_div(pool_, rows, config_.threads / config_.lanes);
    } else if (config_.part == Part::Row) {
      launch.grid[0] = pool_.mul(rows, pool_.integer(config_.cluster));
    } else {
      launch.grid[0] = pool_.mul(rows, segments_of(pool_, form_, config_));
    }
    if (config_.part == Part::Segment) {
      // With more rows than counters, rows are too long for any memory wherever segments are
      // chosen.
      ir::Expr counted = pool_.make(ir::ExprOp::LessEqual, {rows, pool_.integer(kLaunchCounters)});
      constexpr int64_t kNoGrid = std::numeric_limits<int64_t>::max();
      launch.grid[0] = pool_.select(counted, launch.grid[0], pool_.integer(kNoGrid));
    }
    return launch;
  }

  // As many as shared memory allows. Blocks of kWideBlock threads get 64 registers per thread:
  // without this bound ptxas uses fewer registers and spills.
  int min_blocks() const {
    if (!by_block()) return 0;
    if (!config_.shared) return config_.threads == kWideBlock && !config_.whole ? 2 : 0;
    return std::min(all_shared_ / (reads_.shared_bytes() + static_bytes() + kBlockReserved),
                    kAllRegisters / (kRegisters * config_.threads));
  }

  std::string name() const {
    if (config_.part == Part::Segment) return "row_segments";
    if (config_.part == Part::Partials) return "row_partials";
    if (config_.part == Part::Finish) return "row_finish";
    if (config_.cluster > 1) return "row_cluster";
    return config_.whole ? "row_resident" : "row_streaming";
  }

  // The row and segment of this thread, and its lane in the segment.
  void place() {
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.cascade.rows));
    std::string begin = "0", extent = fmt::format("static_cast<int>({})", length_);
    if (!by_block()) {
      // Threads beyond the last row repeat it, because they take part in the warp's shuffles.
      emitter_.line(
          fmt::format("const long long row = min_of(blockIdx.x * {0}ll + threadIdx.x / "
                      "{1}, {2} - 1);\nconst int lane = threadIdx.x % {1};",
                      config_.threads / config_.lanes, config_.lanes, kernel_.size(rows)));
    } else if (config_.cluster > 1) {
      emitter_.line(
          fmt::format("const long long row = blockIdx.x / {};\nconst int lane = "
                      "ptx_cluster_rank() * {} + threadIdx.x;",
                      config_.cluster, config_.threads));
    } else if (config_.part == Part::Row) {
      emitter_.line("const long long row = blockIdx.x;\nconst int lane = threadIdx.x;");
    } else {
      const std::string segment = kernel_.size(config_.segment);
      emitter_.line(
          fmt::format("const unsigned segments = ({0} + {1} - 1) / {1};", length_, segment));
      emitter_.line(
          "const unsigned row_number = blockIdx.x / segments, part = blockIdx.x - row_number * "
          "segments;");
      emitter_.line("const long long row = row_number;\nconst int lane = threadIdx.x;");
      begin = fmt::format("part * {}", segment);
      extent = fmt::format("static_cast<int>(min_of({} - begin, {}))", length_, segment);
    }
    emitter_.line(
        fmt::format("const long long begin = {};\nconst int extent = {};", begin, extent));
    bind_coordinates(emitter_, form_.cascade.rows, "row");
  }

  void finish() {
    state_.bind_state("s");
    state_.bind_results(length_);
  }

  ir::ExprPool& pool_;
  const FlatStreaming& form_;
  SinglePassConfig config_;
  const int all_shared_;  // bytes of an SM
  int64_t states_;
  KernelText kernel_;
  Emitter emitter_;
  VectorLoads reads_;
  StateStruct state_;
  SinglePassBody passes_;
  std::string length_;
};

}  // namespace

ir::Expr segments_of(ir::ExprPool& pool, const FlatStreaming& form,
                     const SinglePassConfig& config) {
  ir::Expr last = pool.sub(config.segment, pool.integer(1));
  return pool.floordiv(pool.add(form.length(), last), config.segment);
}

int single_pass_static_bytes(const SinglePassConfig& config, int64_t state_bytes,
                             int staging_words) {
  constexpr int kCounted = 8, kBarrier = 8;  // in each of the two variants of the body
  const int warps = config.threads / 32;
  int64_t bytes = int64_t{warps} * VectorLoads::kStagingVectors * staging_words * 16;
  // Padding before the aligned arrays.
  if (staging_words > 0) bytes += kSharedAlignment;
  if (config.lanes > 32) bytes += warps * state_bytes;
  if (config.part == Part::Segment) bytes += kCounted;
  if (config.cluster > 1) bytes += config.cluster * state_bytes + kBarrier;
  return static_cast<int>((bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment);
}

KernelLaunch single_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                                const SinglePassConfig& config, int64_t states) {
  return SinglePassText(builder, form, config, states).launch();
}

}  // namespace redfuser::codegen
