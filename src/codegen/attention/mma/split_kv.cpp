// Attention of few rows: a block has a segment of the keys and deals its tiles to its warps, each
// with a ring of its own. The states of warps are merged in shared memory, those of segments by the
// last block of a row tile.
#include "codegen/attention/mma/split_kv.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/attention/attention_functor.h"
#include "codegen/attention/mma/mma_fold.h"
#include "codegen/attention/visible_keys.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/loop.h"

namespace redfuser::codegen {
namespace {

class SplitKvText {
 public:
  SplitKvText(StepBuilder& builder, const AttentionSpec& form, const SplitKvConfig& config,
              const std::optional<TmaTiles>& boxes, const Segments& segments)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        layout_(split_kv_layout(builder.target, form, config)),
        boxes_(boxes),
        segments_(segments),
        lines_(split_rows(form)),
        visible_(pool_, form, mask_condition(pool_, form)),
        tile_(builder, form, config.keys, (lines_ + 7) / 8),
        products_(tile_.products()),
        kernel_(tile_.kernel()),
        functor_(kernel_, form, products_.rounded()),
        emitter_(tile_.emitter()),
        shared_bytes_(split_shared_bytes(builder.target, form, config)) {}

  KernelLaunch launch() {
    place();
    boxes_ ? start_boxes() : start_lines();
    tile_.declare_state();
    fold_tiles();
    const std::string merge = merge_states();
    std::vector<std::string_view> headers = {"device/attention/split_merge.cuh",
                                             "device/key_tiles.cuh", "device/attention.cuh"};
    if (products_.needs_parts()) headers.push_back("device/attention_parts.cuh");
    if (boxes_) headers.push_back("device/split.cuh");
    KernelLaunch launch = kernel_.launch("attention_split", form_.rows.comment, headers, merge,
                                         emitter_.close(), config_.threads(), config_.blocks);
    launch.config = config_.parameters();
    launch.shared = shared_bytes_;
    launch.static_shared = SplitKvLayout::kStatic;
    launch.grid[0] = pool_.mul(segments_.groups, segments_.count);
    return launch;
  }

 private:
  // Blocks and tiles have 32-bit numbers. The shuffle tells the compiler that the warp index is the
  // same in all lanes.
  void place() {
    emitter_.line(fmt::format(
        "const unsigned segments = static_cast<unsigned>({}), row_tiles = "
        "static_cast<unsigned>({});\n"
        "const unsigned group = blockIdx.x / segments, segment = blockIdx.x - group * segments;\n"
        "const long long other = group / row_tiles, first_row = (group % row_tiles) * {}ll;",
        kernel_.size(segments_.count), kernel_.size(segments_.row_tiles), lines_));
    emitter_.line(
        "const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, "
        "quad = lane >> 2, pair = (lane & 3) * 2;\nconst long long own_row = first_row + quad;");
    bind_coordinates(emitter_, form_.others, "other");
    visible_.declare(emitter_, "first_row",
                     fmt::format("min_of(first_row + {}, {} - 1)", lines_ - 1, tile_.row_count()),
                     config_.keys);
    emitter_.line(
        "const int own_tiles = (tiles + static_cast<int>(segments) - 1) / "
        "static_cast<int>(segments), start = static_cast<int>(segment) * own_tiles, stop = "
        "min(tiles, start + own_tiles), own_first = start + warp;");
  }

  // Loads Q to shared memory and declares load_keys(tile, stage), which loads K and V of a visited
  // tile that the segment has.
  void start_lines() {
    emitter_.line(fmt::format(
        "extern __shared__ __align__(16) char memory[];\n"
        "float* const block_states = reinterpret_cast<float*>(memory);\n"
        "{0}* const q_tile = reinterpret_cast<{0}*>(memory);\n"
        "{5}* const k_tiles = reinterpret_cast<{5}*>(memory + {1} + warp * {2});\n"
        "{6}* const v_tiles = reinterpret_cast<{6}*>(memory + {1} + warp * {2} + {3});\n"
        "{6}* const staged = reinterpret_cast<{6}*>(memory + {1} + warp * {2} + {4});",
        products_.query.type, layout_.rings, ring(), config_.stages * layout_.key,
        config_.stages * (layout_.key + layout_.value), products_.key.type, products_.value.type));
    tile_.declare_query();
    emitter_.line(
        fmt::format("{}(q_tile, q_data, q_at, {} - first_row, {}, q_vector, threadIdx.x);\n"
                    "ptx_copy_commit();",
                    products_.query.load(MmaFold::kRows, config_.threads()), tile_.row_count(),
                    products_.query.extent));
    tile_.declare_key_and_value();
    std::string loads;
    for (const auto& [name, operand] :
         {std::pair("k", &products_.key), std::pair("v", &products_.value)}) {
      loads += fmt::format(
          "{0}({1}_tiles + stage * {2}, {1}_data, [&](long long line, long long e) {{ return "
          "{1}_at(from + line, e); }}, {3} - from, {4}, {1}_vector, lane);\n",
          operand->load(config_.keys, 32), name, elements(*operand), tile_.key_count(),
          operand->extent);
    }
    emitter_.line(fmt::format(
        "const auto load_keys = [&](int tile, int stage) {{\nif (tile < stop) {{\n"
        "const long long from = {};\n{}}}\nptx_copy_commit();\n}};\n"
        "#pragma unroll\nfor (int ahead = 0; ahead < {}; ++ahead) load_keys(own_first + ahead * "
        "{}, ahead);",
        first_key(), loads, config_.stages - 1, config_.warps));
  }

  // Issues the first TMA loads at once; one thread calls load_keys(tile, stage). Q is loaded to
  // registers meanwhile.
  void start_boxes() {
    emitter_.line(fmt::format(
        "extern __shared__ __align__(16) char memory[];\n"
        "const unsigned base = (ptx_shared_address(memory) + {0}) / {1} * {1};\n"
        "float* const block_states = reinterpret_cast<float*>(memory + (base - "
        "ptx_shared_address(memory)));\n"
        "const unsigned k_tiles = base + warp * {2}, v_tiles = k_tiles + {3}, barriers = base + "
        "{4} + warp * {5};",
        TmaTile::kAlignment - 1, TmaTile::kAlignment, ring(), config_.stages * layout_.key,
        layout_.barriers, config_.stages * 8));
    std::string copies, prefetches;
    for (const auto& [name, read, columns, bytes] :
         {std::tuple("k", &boxes_->key, tile_.depth(), layout_.key),
          std::tuple("v", &boxes_->value, tile_.columns(), layout_.value)}) {
      const TmaTile tile{config_.keys, columns};
      const std::string map = kernel_.view(tile.view(*read));
      prefetches += fmt::format("ptx_prefetch_map({});\n", map);
      copies += tile.copies({fmt::format("{}_tiles + stage * {}", name, bytes), map, "full", "from",
                             declare_coordinates(emitter_, *read)});
    }
    emitter_.line(fmt::format(
        "const auto load_keys = [&](int tile, int stage) {{\nconst int from = {5};\n"
        "const unsigned full = barriers + stage * 8;\nptx_barrier_expect(full, {0});\n{1}}};\n"
        "if (ptx_elect()) {{\n{2}"
        "#pragma unroll\nfor (int i = 0; i < {3}; ++i) ptx_barrier_init(barriers + i * 8, 1);\n"
        "ptx_barrier_init_fence();\n"
        "#pragma unroll 1\nfor (int i = 0; i < {3}; ++i) {{\n"
        "const int tile = own_first + i * {4};\nif (tile < stop) load_keys(tile, i);\n}}\n"
        "}}\n__syncwarp();",
        layout_.key + layout_.value, copies, prefetches, config_.stages, config_.warps,
        as_int(first_key())));
    tile_.declare_query(2);
    emitter_.line(
        fmt::format("unsigned q[{0}][4];\n"
                    "load_query<{1}, {2}>(q, q_data, q_at, {3} - first_row, {4}, q_vector);",
                    tile_.depth() / 16, tile_.depth(), (lines_ + 7) / 8, tile_.row_count(),
                    form_.depth->extent()->integer));
  }

  // The first key of visited tile `tile`.
  std::string first_key() const {
    return fmt::format("{} * {}ll", visible_.tile("tile"), config_.keys);
  }

  // Bytes of a warp's ring of tiles and its weights.
  int ring() const { return config_.stages * (layout_.key + layout_.value) + layout_.staged; }

  void fold_tiles() {
    emitter_.line("long long folded = 0;\nint stage = 0;");
    emitter_.line(boxes_
                      ? std::string("unsigned parity = 0;")
                      : fmt::format("ptx_copy_wait<{}>();\n__syncthreads();", config_.stages - 1));
    emitter_.open();
    if (boxes_) {
      emitter_.line("await_copies(barriers + stage * 8, parity);\n__syncwarp();");
    } else {
      emitter_.line(fmt::format(
          "ptx_copy_wait<{}>();\n__syncwarp();\n"
          "load_keys(tile + {}, stage == 0 ? {} : stage - 1);",
          config_.stages - 2, (config_.stages - 1) * config_.warps, config_.stages - 1));
    }
    emitter_.line(
        fmt::format("const long long first = {};\n"
                    "const int valid = static_cast<int>(min_of({} - first, {}ll));",
                    first_key(), tile_.key_count(), config_.keys));
    fold();
    if (boxes_) {
      emitter_.line(
          fmt::format("__syncwarp();\nconst int next = tile + {};\n"
                      "if (next < stop && ptx_elect()) load_keys(next, stage);",
                      config_.stages * config_.warps));
    }
    emitter_.line(fmt::format("if (++stage == {}) {{\nstage = 0;\n{}}}", config_.stages,
                              boxes_ ? "parity ^= 1;\n" : ""));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("for (int tile = own_first; tile < stop; tile += {}) {{\n{}}}",
                              config_.warps, text));
  }

  void fold() {
    const int keys = config_.keys;
    if (boxes_) {
      tile_.fold(fmt::format("score_product<{}, {}>(s, q, k_tiles + stage * {}, {}{{}});",
                             tile_.depth(), keys, layout_.key, products_.key.type),
                 fmt::format("value_product<{}, {}>(o, p, v_tiles + stage * {}, {}{{}});",
                             tile_.columns(), keys, layout_.value, products_.value.type));
      return;
    }
    tile_.fold(products_.scores(keys, "q_tile",
                                fmt::format("k_tiles + stage * {}", elements(products_.key))),
               products_.values(
                   keys, fmt::format("v_tiles + stage * {}", elements(products_.value)), "staged"));
  }

  // Elements of a K or V tile.
  int elements(const MmaOperand& operand) const {
    return operand.bytes(config_.keys) / operand.element;
  }

  // Config of src/device/attention/split_merge.cuh.
  std::string merge_config() const {
    return fmt::format(
        "struct Config {{\nstatic constexpr int kRows = {}, kThreads = {}, kWarps = {}, kSegments "
        "= "
        "{};\n}};\n",
        lines_, config_.threads(), config_.warps,
        segments_.count->is_constant() ? segments_.count->integer : 0);
  }

  // Returns the functor and the configuration.
  std::string merge_states() {
    const std::string states = kernel_.buffer(segments_.states, true), functor = functor_.text();
    emitter_.line(fmt::format(
        "{}State own[2];\n{}\n"
        "finish_split<Config>({}, own, o, block_states, reinterpret_cast<float*>({}), {}, "
        "{{other, first_row, {}, group, segments}});",
        boxes_ ? "" : "ptx_copy_wait<0>();\n",
        unrolled("h", 2, functor_.from_registers("own[h]", "folded")), functor_.construction(),
        states, kernel_.counter(), tile_.row_count()));
    return merge_config() + functor;
  }

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  const SplitKvConfig config_;
  const SplitKvLayout layout_;
  const std::optional<TmaTiles>& boxes_;
  const Segments segments_;
  const int lines_;
  const VisibleKeys visible_;
  MmaFold tile_;
  const MmaProducts& products_;
  KernelText& kernel_;
  AttentionFunctor functor_;
  Emitter& emitter_;
  const int shared_bytes_;
};

}  // namespace

std::optional<KernelLaunch> split_kv_kernel(StepBuilder& builder, const AttentionSpec& form) {
  const auto boxes = tma_tiles(builder, form);
  const auto config = split_kv_config(builder.target, form, boxes.has_value());
  if (!config) return std::nullopt;
  return split_kv_kernel(builder, form, *config);
}

KernelLaunch split_kv_kernel(StepBuilder& builder, const AttentionSpec& form,
                             const SplitKvConfig& config) {
  const auto boxes = config.boxed ? tma_tiles(builder, form) : std::nullopt;
  RF_CHECK(!config.boxed || boxes, "TMA cannot load the keys");
  const Segments segments = split_segments(builder, form, config);
  return SplitKvText(builder, form, config, boxes, segments).launch();
}

}  // namespace redfuser::codegen
