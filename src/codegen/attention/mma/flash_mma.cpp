// A portable attention kernel: 64 rows of a block by tiles of 64 keys.
#include "codegen/attention/mma/flash_mma.h"

#include "codegen/attention/mma/mma_fold.h"
#include "codegen/attention/visible_keys.h"
#include "codegen/elementwise/elementwise_kernel.h"

#include <fmt/format.h>

#include <algorithm>

namespace redfuser::codegen {
namespace {

constexpr int kRows = 64, kKeys = 64, kThreads = 128;

int stages_of(const MmaFold& tile) { return tile.narrow() ? 2 : 1; }

int shared_bytes(const MmaFold& tile) {
  int elements =
      tile.elements(kRows, tile.depth()) +
      stages_of(tile) * (tile.elements(kKeys, tile.depth()) + tile.elements(kKeys, tile.columns()));
  if (!tile.narrow()) elements += tile.elements(kRows, kKeys);
  return elements * tile.element_bytes();
}

class AttentionText {
 public:
  AttentionText(StepBuilder& builder, const AttentionSpec& form)
      : pool_(builder.pool()),
        form_(form),
        visible_(pool_, form, mask_condition(pool_, form)),
        tile_(builder, form, kKeys, 2),
        kernel_(tile_.kernel()),
        emitter_(tile_.emitter()),
        stages_(stages_of(tile_)) {}

  KernelLaunch launch() {
    place();
    declare_tiles();
    tile_.declare_state();
    tile_loop();
    write_outputs();
    KernelLaunch launch =
        kernel_.launch("attention", form_.rows.comment,
                       {"ptx", "math", "types", "reduce", "key_tiles", "attention"}, "",
                       emitter_.close(), kThreads);
    launch.shared = shared_bytes(tile_);
    launch.grid[0] = pool_.mul(ceil_div(pool_, tile_.rows(), kRows),
                               product_of(pool_, extents_of(pool_, form_.others)));
    return launch;
  }

 private:
  void place() {
    const std::string tiles = kernel_.size(ceil_div(pool_, tile_.rows(), kRows));
    emitter_.line(
        fmt::format("const long long other = floor_div(blockIdx.x, {0}), first_row = "
                    "(blockIdx.x - other * {0}) * {1};",
                    tiles, kRows));
    emitter_.line(
        "const int warp = threadIdx.x >> 5, quad = (threadIdx.x & 31) >> 2, pair = "
        "(threadIdx.x & 3) * 2;\nconst long long own_row = first_row + warp * 16 + quad;");
    bind_coordinates(emitter_, form_.others, "other");
    visible_.declare(emitter_, "first_row",
                     fmt::format("min_of(first_row + {}, {} - 1)", kRows - 1, tile_.row_count()),
                     kKeys);
  }

  void declare_tiles() {
    emitter_.line("extern __shared__ __align__(16) char memory[];");
    emitter_.line(fmt::format("{0}* const q_tile = reinterpret_cast<{0}*>(memory);", tile_.type()));
    emitter_.line(fmt::format("{}* const k_tiles = q_tile + {};", tile_.type(),
                              tile_.elements(kRows, tile_.depth())));
    emitter_.line(fmt::format("{}* const v_tiles = k_tiles + {};", tile_.type(),
                              stages_ * tile_.elements(kKeys, tile_.depth())));
    emitter_.line(fmt::format("{}* const staged = v_tiles + {} + warp * {};", tile_.type(),
                              stages_ * tile_.elements(kKeys, tile_.columns()),
                              tile_.narrow() ? 0 : tile_.elements(16, kKeys)));
    tile_.declare_query();
    tile_.declare_key_and_value();
    emitter_.line(fmt::format(
        "load_tile<{}, {}, {}>(q_tile, q_data, q_at, {} - first_row, {}, q_vector, "
        "threadIdx.x);",
        kRows, tile_.depth(), kThreads, tile_.row_count(), form_.depth->extent()->integer));
    emitter_.line("const auto load_keys = [&](long long from, int stage) {");
    for (const auto& [name, columns, extent] :
         {std::tuple("k", tile_.depth(), form_.depth->extent()->integer),
          std::tuple("v", tile_.columns(), form_.column->extent()->integer)}) {
      emitter_.line(
          fmt::format("load_tile<{0}, {1}, {6}>({2}_tiles + stage * {3}, {2}_data, [&](long long "
                      "line, long long e) {{ return {2}_at(from + line, e); }}, {4} - from, "
                      "{5}, {2}_vector, threadIdx.x);",
                      kKeys, columns, name, tile_.elements(kKeys, columns), tile_.key_count(),
                      extent, kThreads));
    }
    emitter_.line("ptx_copy_commit();\n};");
  }

  void tile_loop() {
    emitter_.open();
    emitter_.line(fmt::format("const long long first = {};", first_key("tile")));
    if (stages_ == 2) {
      emitter_.line(
          fmt::format("if (tile + 1 < tiles) load_keys({}, stage ^ 1); else ptx_copy_commit();",
                      first_key("tile + 1")));
      emitter_.line("ptx_copy_wait<1>();\n__syncthreads();");
    } else {
      emitter_.line("load_keys(first, 0);\nptx_copy_wait<0>();\n__syncthreads();");
    }
    emitter_.line(fmt::format("const int valid = static_cast<int>(min_of({} - first, {}ll));",
                              tile_.key_count(), kKeys));
    tile_.fold(fmt::format("score_product<{}, {}>(s, q_tile + warp * {}, k_tiles + stage * {});",
                           tile_.depth(), kKeys, tile_.elements(16, tile_.depth()),
                           tile_.elements(kKeys, tile_.depth())),
               fmt::format("value_product<{}, {}>(o, p, v_tiles + stage * {}, staged);",
                           tile_.columns(), kKeys, tile_.elements(kKeys, tile_.columns())));
    if (stages_ == 2) emitter_.line("stage ^= 1;");
    emitter_.line("__syncthreads();");
    const std::string text = emitter_.close();
    if (stages_ == 2) {
      emitter_.line(fmt::format("if (tiles > 0) load_keys({}, 0);", first_key("0")));
    }
    emitter_.line("long long folded = 0;\nint stage = 0;");
    emitter_.line(fmt::format("for (int tile = 0; tile < tiles; ++tile) {{\n{}}}", text));
  }

  std::string first_key(const std::string& tile) const {
    return fmt::format("{} * {}ll", visible_.tile(tile), kKeys);
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
  const VisibleKeys visible_;
  MmaFold tile_;
  KernelText& kernel_;
  Emitter& emitter_;
  int stages_ = 1;
};

}  // namespace

bool fits_attention_kernel(StepBuilder& builder, const AttentionSpec& form) {
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size > kLargestPortable) return false;
  return shared_bytes(MmaFold(builder, form, kKeys, 2)) <= builder.target.shared_bytes;
}

KernelLaunch attention_kernel(StepBuilder& builder, const AttentionSpec& form) {
  return AttentionText(builder, form).launch();
}

}  // namespace redfuser::codegen
