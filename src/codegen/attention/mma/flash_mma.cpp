// The loop of a block over K/V tiles.
#include "codegen/attention/mma/flash_mma.h"

#include <fmt/format.h>

#include "codegen/attention/mma/mma_fold.h"
#include "codegen/attention/visible_keys.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

class FlashMmaText {
 public:
  FlashMmaText(StepBuilder& builder, const AttentionSpec& form, const FlashMmaConfig& config)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        visible_(pool_, form, mask_condition(pool_, form)),
        tile_(builder, form, config.keys, 2),
        products_(tile_.products()),
        kernel_(tile_.kernel()),
        emitter_(tile_.emitter()),
        shared_bytes_(flash_mma_shared_bytes(builder.target, form, config)) {}

  KernelLaunch launch() {
    place();
    declare_tiles();
    tile_.declare_state();
    tile_loop();
    write_outputs();
    std::vector<std::string_view> headers = {"device/key_tiles.cuh", "device/attention.cuh"};
    if (products_.needs_parts()) headers.push_back("device/attention_parts.cuh");
    KernelLaunch launch =
        kernel_.launch("attention", form_.rows.comment, headers, "", emitter_.close(), threads());
    launch.config = config_.parameters();
    launch.shared = shared_bytes_;
    launch.grid[0] = pool_.mul(ceil_div(pool_, tile_.rows(), config_.rows()),
                               product_of(pool_, extents_of(pool_, form_.others)));
    return launch;
  }

 private:
  int threads() const { return config_.warps * 32; }

  void place() {
    const std::string tiles = kernel_.size(ceil_div(pool_, tile_.rows(), config_.rows()));
    emitter_.line(
        fmt::format("const long long other = floor_div(blockIdx.x, {0}), first_row = "
                    "(blockIdx.x - other * {0}) * {1};",
                    tiles, config_.rows()));
    emitter_.line(
        "const int warp = threadIdx.x >> 5, quad = (threadIdx.x & 31) >> 2, pair = "
        "(threadIdx.x & 3) * 2;\nconst long long own_row = first_row + warp * 16 + quad;");
    bind_coordinates(emitter_, form_.others, "other");
    visible_.declare(
        emitter_, "first_row",
        fmt::format("min_of(first_row + {}, {} - 1)", config_.rows() - 1, tile_.row_count()),
        config_.keys);
  }

  void declare_tiles() {
    const MmaOperand &q = products_.query, &k = products_.key, &v = products_.value;
    const int k_bytes = config_.stages * k.bytes(config_.keys);
    const int v_bytes = config_.stages * v.bytes(config_.keys);
    emitter_.line(fmt::format(
        "extern __shared__ __align__(16) char memory[];\n"
        "{0}* const q_tile = reinterpret_cast<{0}*>(memory);\n"
        "{1}* const k_tiles = reinterpret_cast<{1}*>(memory + {3});\n"
        "{2}* const v_tiles = reinterpret_cast<{2}*>(memory + {4});",
        q.type, k.type, v.type, q.bytes(config_.rows()), q.bytes(config_.rows()) + k_bytes));
    emitter_.line(fmt::format(
        "{0}* const staged = reinterpret_cast<{0}*>(memory + {1} + warp * {2});", v.type,
        q.bytes(config_.rows()) + k_bytes + v_bytes, products_.staged_bytes(config_.keys)));
    tile_.declare_query();
    tile_.declare_key_and_value();
    emitter_.line(
        fmt::format("{}(q_tile, q_data, q_at, {} - first_row, {}, q_vector, threadIdx.x);",
                    q.load(config_.rows(), threads()), tile_.row_count(), q.extent));
    emitter_.line("const auto load_keys = [&](long long from, int stage) {");
    for (const auto& [name, operand] : {std::pair("k", &k), std::pair("v", &v)}) {
      emitter_.line(
          fmt::format("{0}({1}_tiles + stage * {2}, {1}_data, [&](long long line, long long e) {{ "
                      "return {1}_at(from + line, e); }}, {3} - from, {4}, {1}_vector, "
                      "threadIdx.x);",
                      operand->load(config_.keys, threads()), name, elements(*operand),
                      tile_.key_count(), operand->extent));
    }
    emitter_.line("ptx_copy_commit();\n};");
  }

  // Elements of a K or V tile.
  int elements(const MmaOperand& operand) const {
    return operand.bytes(config_.keys) / operand.element;
  }

  void tile_loop() {
    emitter_.open();
    emitter_.line(fmt::format("const long long first = {};", first_key("tile")));
    if (config_.stages == 2) {
      emitter_.line(
          fmt::format("if (tile + 1 < tiles) load_keys({}, stage ^ 1); else ptx_copy_commit();",
                      first_key("tile + 1")));
      emitter_.line("ptx_copy_wait<1>();\n__syncthreads();");
    } else {
      emitter_.line("load_keys(first, 0);\nptx_copy_wait<0>();\n__syncthreads();");
    }
    emitter_.line(fmt::format("const int valid = static_cast<int>(min_of({} - first, {}ll));",
                              tile_.key_count(), config_.keys));
    const int warp_rows = products_.query.bytes(16) / products_.query.element;
    tile_.fold(
        products_.scores(config_.keys, fmt::format("q_tile + warp * {}", warp_rows),
                         fmt::format("k_tiles + stage * {}", elements(products_.key))),
        products_.values(config_.keys,
                         fmt::format("v_tiles + stage * {}", elements(products_.value)), "staged"));
    if (config_.stages == 2) emitter_.line("stage ^= 1;");
    emitter_.line("__syncthreads();");
    const std::string text = emitter_.close();
    if (config_.stages == 2) {
      emitter_.line(fmt::format("if (tiles > 0) load_keys({}, 0);", first_key("0")));
    }
    emitter_.line("long long folded = 0;\nint stage = 0;");
    emitter_.line(fmt::format("for (int tile = 0; tile < tiles; ++tile) {{\n{}}}", text));
  }

  std::string first_key(const std::string& tile) const {
    return fmt::format("{} * {}ll", visible_.tile(tile), config_.keys);
  }

  void write_outputs() {
    tile_.open_row();
    emitter_.line(fmt::format("const bool exists = own_row + h * 8 < {};", tile_.row_count()));
    tile_.bind_state("a", "[h]", form_.rows.accumulators.size());
    emitter_.open();
    emitter_.line(
        "const long long column = n * 8 + pair + e;\nconst float value = o[n][h * 2 + e];");
    tile_.write_outputs("exists");
    const std::string element = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int n = 0; n < {}; ++n) {{\n#pragma unroll\nfor (int "
                    "e = 0; e < 2; ++e) {{\n{}}}\n}}",
                    tile_.columns() / 8, element));
    tile_.close_row();
  }

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  const FlashMmaConfig config_;
  const VisibleKeys visible_;
  MmaFold tile_;
  const MmaProducts& products_;
  KernelText& kernel_;
  Emitter& emitter_;
  const int shared_bytes_;
};

}  // namespace

KernelLaunch flash_mma_kernel(StepBuilder& builder, const AttentionSpec& form,
                              const FlashMmaConfig& config) {
  return FlashMmaText(builder, form, config).launch();
}

}  // namespace redfuser::codegen
