// Attention of few rows: a block has a segment of the keys, its warps take turns at tiles of it,
// each through a ring of its own. The states of warps are merged in shared memory, those of
// segments by the last block of a row tile.
#include <algorithm>

#include "base/error.h"
#include "codegen/attention_merge.h"
#include "codegen/attention_split.h"
#include "codegen/visible_keys.h"

namespace redfuser {
namespace {

class SplitText {
 public:
  SplitText(StepBuilder& builder, const AttentionForm& form, const SplitConfig& config,
            const std::optional<BoxedTiles>& boxes, const Segments& segments)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        layout_(split_layout(form, config)),
        boxes_(boxes),
        segments_(segments),
        lines_(split_rows(form)),
        visible_(pool_, form),
        tile_(builder, form, config.keys, (lines_ + 7) / 8),
        merge_(tile_, form, lines_, config.threads()),
        kernel_(tile_.kernel()),
        emitter_(tile_.emitter()) {}

  KernelLaunch launch() {
    place();
    declare_memory();
    load_query();
    declare_loads();
    tile_.declare_state();
    fold_tiles();
    merge_states();
    std::vector<std::string_view> headers = {"ptx", "math", "types", "reduce", "attention"};
    if (boxes_) headers.insert(headers.end(), {"ptx_hopper", "hopper", "split"});
    KernelLaunch launch = kernel_.launch("attention_split", comment_of(form_.rows.comment), headers,
                                         "", emitter_.close(), config_.threads(), config_.blocks);
    const int heads = Segments::kMost * lines_ * state_head(form_);
    launch.shared = std::max(
        layout_.bytes, std::max(config_.warps * block(), heads) * 4 + SplitLayout::kAlignment);
    launch.grid[0] = pool_.mul(segments_.groups, segments_.count);
    return launch;
  }

 private:
  // Floats of a block of states.
  int block() const { return state_block(form_, lines_); }

  void place() {
    emitter_.line(fmt::format(
        "const long long segments = {}, row_tiles = {};\n"
        "const long long group = floor_div(blockIdx.x, segments), segment = blockIdx.x - group * "
        "segments;\n"
        "const long long other = floor_div(group, row_tiles), first_row = (group - other * "
        "row_tiles) * {};",
        kernel_.size(segments_.count), kernel_.size(segments_.row_tiles), lines_));
    emitter_.line(
        "const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, quad = lane >> 2, pair = "
        "(lane & 3) * 2;\nconst long long own_row = first_row + quad;");
    bind_coordinates(emitter_, form_.others, "other");
    visible_.declare(emitter_, "first_row", lines_, config_.keys);
    emitter_.line(fmt::format(
        "const long long tiles = floor_div(max_of(end - begin, 0ll) + {0}, {1}ll);\n"
        "const long long own_tiles = floor_div(tiles + segments - 1, segments);\n"
        "const long long start = begin + segment * own_tiles * {1}, stop = min_of(end, start + "
        "own_tiles * {1});",
        config_.keys - 1, config_.keys));
  }

  void declare_memory() {
    const int ring = config_.stages * (layout_.key + layout_.value) + layout_.staged;
    emitter_.line("extern __shared__ __align__(16) char memory[];");
    if (!boxes_) {
      emitter_.line(fmt::format(
          "{0}* const q_tile = reinterpret_cast<{0}*>(memory);\n"
          "{0}* const k_tiles = reinterpret_cast<{0}*>(memory + {1} + warp * {2});\n"
          "{0}* const v_tiles = reinterpret_cast<{0}*>(memory + {1} + warp * {2} + {3});\n"
          "{0}* const staged = reinterpret_cast<{0}*>(memory + {1} + warp * {2} + {4});",
          tile_.type(), layout_.rings, ring, config_.stages * layout_.key,
          config_.stages * (layout_.key + layout_.value)));
      return;
    }
    emitter_.line(fmt::format(
        "char* const base = memory + (-ptx_shared_address(memory) & {0});\n"
        "{1}* const q_tile = reinterpret_cast<{1}*>(base);\n"
        "const unsigned k_tiles = ptx_shared_address(base) + {2} + warp * {3}, v_tiles = k_tiles + "
        "{4}, barriers = ptx_shared_address(base) + {5} + warp * {6};\n"
        "if (lane == 0) {{\nfor (int i = 0; i < {7}; ++i) ptx_barrier_init(barriers + i * 8, 1);\n"
        "ptx_barrier_init_fence();\n}}\n__syncwarp();",
        SplitLayout::kAlignment - 1, tile_.type(), layout_.rings, ring,
        config_.stages * layout_.key, layout_.barriers, config_.stages * 8, config_.stages));
  }

  void load_query() {
    tile_.declare_query();
    emitter_.line(
        fmt::format("load_tile<{}, {}, {}>(q_tile, q_data, q_at, {} - first_row, {}, q_vector, "
                    "threadIdx.x);\nptx_copy_commit();",
                    AttentionTile::kRows, tile_.depth(), config_.threads(), tile_.row_count(),
                    form_.depth->extent()->integer));
  }

  // load_keys(from, stage): the keys and values from `from` on, if the segment has any.
  void declare_loads() { boxes_ ? declare_box_loads() : declare_line_loads(); }

  void declare_line_loads() {
    tile_.declare_key_and_value();
    std::string loads;
    for (const auto& [name, columns, extent, bytes] :
         {std::tuple("k", tile_.depth(), form_.depth->extent()->integer, layout_.key),
          std::tuple("v", tile_.columns(), form_.column->extent()->integer, layout_.value)}) {
      loads += fmt::format(
          "load_tile<{0}, {1}, 32>({2}_tiles + stage * {3}, {2}_data, [&](long long line, long "
          "long e) {{ return {2}_at(from + line, e); }}, stop - from, {4}, {2}_vector, lane);\n",
          config_.keys, columns, name, bytes / tile_.element_bytes(), extent);
    }
    emitter_.line(fmt::format(
        "const auto load_keys = [&](long long from, int stage) {{\nif (from < stop) {{\n{}}}\n"
        "ptx_copy_commit();\n}};",
        loads));
  }

  void declare_box_loads() {
    std::string copies;
    for (const auto& [name, read, columns, bytes] :
         {std::tuple("k", &boxes_->key, tile_.depth(), layout_.key),
          std::tuple("v", &boxes_->value, tile_.columns(), layout_.value)}) {
      TensorView view = read->view;
      view.box = {SplitLayout::kSlabColumns, config_.keys};
      view.box.resize(view.dims.size(), 1);
      const std::string map = kernel_.view(std::move(view));
      emitter_.line(fmt::format("if (lane == 0) ptx_prefetch_map({});", map));
      std::vector<std::string> at;
      for (Expr e : read->coordinates) {
        at.push_back(emitter_.fresh("c"));
        emitter_.line(
            fmt::format("const int {} = static_cast<int>({});", at.back(), emitter_.emit(e)));
      }
      for (int c = 0; c < columns; c += SplitLayout::kSlabColumns) {
        copies += fmt::format(
            "ptx_copy_box({}_tiles + stage * {} + {}, {}, full, {}, static_cast<int>(from), {});\n",
            name, bytes, c / SplitLayout::kSlabColumns * config_.keys * SplitLayout::kSlabRowBytes,
            map, c, fmt::join(at, ", "));
      }
    }
    emitter_.line(fmt::format(
        "const auto load_keys = [&](long long from, int stage) {{\nif (lane == 0 && from < stop) "
        "{{\nconst unsigned full = barriers + stage * 8;\nptx_barrier_expect(full, {});\n{}}}\n}};",
        layout_.key + layout_.value, copies));
  }

  void fold_tiles() {
    emitter_.line(fmt::format(
        "const long long own_first = start + warp * {0};\n"
        "#pragma unroll\nfor (int ahead = 0; ahead < {1}; ++ahead) load_keys(own_first + ahead * "
        "{2}, ahead);\nptx_copy_wait<{3}>();\n__syncthreads();\nlong long folded = 0;\nint stage = "
        "0;",
        config_.keys, config_.stages - 1, config_.step(), boxes_ ? 0 : config_.stages - 1));
    if (boxes_) {
      emitter_.line(fmt::format("unsigned q[{0}][4], parity = 0;\nload_query<{1}, {2}>(q, q_tile);",
                                tile_.depth() / 16, tile_.depth(), (lines_ + 7) / 8));
    }
    emitter_.open();
    emitter_.line(boxes_ ? "await_copies(barriers + stage * 8, parity);\n__syncwarp();"
                         : fmt::format("ptx_copy_wait<{}>();\n__syncwarp();", config_.stages - 2));
    emitter_.line(
        fmt::format("load_keys(first + {}, stage == 0 ? {} : stage - 1);\n"
                    "const int valid = static_cast<int>(min_of(stop - first, {}ll));",
                    (config_.stages - 1) * config_.step(), config_.stages - 1, config_.keys));
    fold();
    emitter_.line(fmt::format("if (++stage == {}) {{\nstage = 0;\n{}}}", config_.stages,
                              boxes_ ? "parity ^= 1;\n" : ""));
    const std::string text = emitter_.close();
    emitter_.line(
        fmt::format("for (long long first = own_first; first < stop; first += {}) {{\n{}}}",
                    config_.step(), text));
  }

  void fold() {
    const int keys = config_.keys;
    if (boxes_) {
      tile_.fold(fmt::format("score_product<{}, {}>(s, q, k_tiles + stage * {}, {}{{}});",
                             tile_.depth(), keys, layout_.key, tile_.type()),
                 fmt::format("value_product<{}, {}>(o, p, v_tiles + stage * {}, {}{{}});",
                             tile_.columns(), keys, layout_.value, tile_.type()));
      return;
    }
    tile_.fold(fmt::format("score_product<{}, {}>(s, q_tile, k_tiles + stage * {});", tile_.depth(),
                           keys, layout_.key / tile_.element_bytes()),
               fmt::format("value_product<{}, {}>(o, p, v_tiles + stage * {}, staged);",
                           tile_.columns(), keys, layout_.value / tile_.element_bytes()));
  }

  void merge_states() {
    emitter_.line(
        fmt::format("ptx_copy_wait<0>();\n__syncthreads();\n"
                    "float* const block_states = reinterpret_cast<float*>(q_tile);\n"
                    "float* const own_states = block_states + warp * {};",
                    block()));
    merge_.store_registers("own_states");
    emitter_.line("__syncthreads();");
    merge_.declare();
    emitter_.line(
        fmt::format("merge(block_states, {}, block_states, {});", block(), config_.warps));
    emitter_.open();
    emitter_.line(fmt::format(
        "float* const group_states = reinterpret_cast<float*>({}) + group * segments * {};",
        kernel_.buffer(segments_.states, true), block()));
    merge_.store(fmt::format("(group_states + segment * {})", block()));
    // All heads at once, since the merge passes over them several times.
    emitter_.line(fmt::format(
        "__shared__ bool last;\n__threadfence();\n__syncthreads();\n"
        "if (threadIdx.x == 0) {{\nlast = atomicInc({0} + group, static_cast<unsigned>(segments) - "
        "1) == static_cast<unsigned>(segments) - 1;\n}}\n__syncthreads();\nif (!last) return;\n"
        "__threadfence();\n"
        "for (int i = threadIdx.x; i < segments * {1}; i += {2}) {{\n"
        "const int part = i / {1}, place = i - part * {1};\n"
        "reinterpret_cast<float4*>(block_states)[i] = reinterpret_cast<const float4*>(group_states "
        "+ "
        "part * {3}ll)[place];\n}}\n__syncthreads();\n"
        "merge(block_states, {4}, group_states, static_cast<int>(segments));",
        kernel_.counter(), lines_ * state_head(form_) / 4, config_.threads(), block(),
        lines_ * state_head(form_)));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("if (segments > 1) {{\n{}}}", text));
    merge_.write_outputs();
  }

  ExprPool& pool_;
  const AttentionForm& form_;
  const SplitConfig config_;
  const SplitLayout layout_;
  const std::optional<BoxedTiles>& boxes_;
  const Segments segments_;
  const int lines_;
  const VisibleKeys visible_;
  AttentionTile tile_;
  AttentionMerge merge_;
  KernelText& kernel_;
  Emitter& emitter_;
};

}  // namespace

std::optional<KernelLaunch> attention_split_kernel(StepBuilder& builder,
                                                   const AttentionForm& form) {
  const auto boxes = boxed_tiles(builder, form);
  const auto config = split_config(builder.target, form, boxes.has_value());
  if (!config) return std::nullopt;
  return attention_split_kernel(builder, form, *config);
}

KernelLaunch attention_split_kernel(StepBuilder& builder, const AttentionForm& form,
                                    const SplitConfig& config) {
  const auto boxes = config.boxed ? boxed_tiles(builder, form) : std::nullopt;
  RF_CHECK(!config.boxed || boxes, "keys that the copy engine cannot fetch");
  const Segments segments = split_segments(builder, form, config);
  return SplitText(builder, form, config, boxes, segments).launch();
}

}  // namespace redfuser
