// What a block does: one tile of rows, whose keys and values the producer copies tile by tile.
#include "base/error.h"
#include "codegen/attention_hopper_text.h"

namespace redfuser {
namespace {

constexpr int kGroupThreads = 128, kGroupRows = 64, kSlabColumns = 64, kSlabRowBytes = 128;
constexpr int kAlignment = 1024;

int padded(int64_t n) { return static_cast<int>((n + 15) / 16 * 16); }

}  // namespace

HopperText::HopperText(StepBuilder& builder, const AttentionForm& form,
                       const HopperOperands& operands, const HopperConfig& config)
    : builder_(builder),
      pool_(builder.pool()),
      form_(form),
      operands_(operands),
      config_(config),
      score_(score_form(pool_, form)),
      rows_(score_.rows),
      kernel_(builder.kernel()),
      emitter_(kernel_),
      type_(storage_type(form.query->dtype)),
      depth_(padded(form.depth->extent()->integer)),
      columns_(padded(form.column->extent()->integer)) {
  emitter_.set_fast_exp(true);
  auto note = [&](Expr root) {
    if (!root) return;
    visit(root, [&](Expr e) {
      if (e->op == ExprOp::Leaf && std::find(leaves_.begin(), leaves_.end(), e) == leaves_.end()) {
        leaves_.push_back(e);
      }
    });
  };
  for (const Accumulator& a : rows_.accumulators) {
    note(a.lift);
    note(a.transport);
  }
  for (const Reference& reference : rows_.references) note(reference.value);
  for (Expr e : rows_.finish) note(e);
  for (const auto& output : rows_.outputs) note(output.body);
}

KernelLaunch HopperText::launch() {
  keys_ = kernel_.size(rows_.length());
  row_count_ = kernel_.size(form_.row->extent());
  place_block();
  declare_views();
  declare_memory();
  const std::string produce = producer(), consume = consumer();
  emitter_.line(fmt::format(
      "if (group == 0) {{\nptx_give_registers<{}>();\nif (threadIdx.x == 0) {{\n{}}}\n}} else "
      "{{\nptx_take_registers<{}>();\n{}}}",
      config_.groups > 2 ? 32 : 24, produce, config_.groups > 2 ? 160 : 240, consume));
  KernelLaunch launch =
      kernel_.launch("attention_hopper", comment_of(rows_.comment),
                     {"ptx", "math", "types", "reduce", "attention", "ptx_hopper", "hopper"}, "",
                     emitter_.close(), (config_.groups + 1) * kGroupThreads, 1);
  launch.shared = shared_bytes();
  launch.grid[0] = pool_.mul(ceil_div(pool_, form_.row->extent(), config_.groups * kGroupRows),
                             product_of(pool_, extents_of(pool_, form_.others)));
  return launch;
}

int HopperText::tile_bytes(int lines, int columns) const {
  return (columns + kSlabColumns - 1) / kSlabColumns * lines * kSlabRowBytes;
}

int HopperText::shared_bytes() const {
  constexpr int kBarrierBytes = 1024;
  return kAlignment + kBarrierBytes + tile_bytes(config_.groups * kGroupRows, depth_) +
         config_.stages * (tile_bytes(config_.keys, depth_) + tile_bytes(config_.keys, columns_));
}

// Row tiles run backwards: where later rows see more keys, the longest come first.
void HopperText::place_block() {
  const int rows = config_.groups * kGroupRows;
  const std::string tiles = kernel_.size(ceil_div(pool_, form_.row->extent(), rows));
  emitter_.line(
      fmt::format("const long long other = floor_div(blockIdx.x, {0});\n"
                  "const int first_row = static_cast<int>({0} - 1 - (blockIdx.x - other * {0})) * "
                  "{1};\n"
                  "const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);\n"
                  "const int tiles = static_cast<int>(({2} + {3}) / {4});",
                  tiles, rows, keys_, config_.keys - 1, config_.keys));
  bind_coordinates(emitter_, form_.others, "other");
}

void HopperText::declare_views() {
  auto declare = [&](const BoxedRead& read, int lines, std::vector<std::string>& at) {
    TensorView view = read.view;
    view.box = {kSlabColumns, lines};
    view.box.resize(view.dims.size(), 1);
    for (Expr e : read.coordinates) {
      at.push_back(emitter_.fresh("c"));
      emitter_.line(
          fmt::format("const int {} = static_cast<int>({});", at.back(), emitter_.emit(e)));
    }
    return kernel_.view(std::move(view));
  };
  query_view_ = declare(operands_.query, config_.groups * kGroupRows, query_at_);
  key_view_ = declare(operands_.key, config_.keys, key_at_);
  value_view_ = declare(operands_.value, config_.keys, value_at_);
}

void HopperText::declare_memory() {
  emitter_.line(fmt::format(
      "extern __shared__ char memory[];\n"
      "const unsigned base = (ptx_shared_address(memory) + {0}) & ~{0}u;\n"
      "const unsigned q_tile = base, k_tiles = q_tile + {1}, v_tiles = k_tiles + {2} * {3}, "
      "barriers = v_tiles + {2} * {4};\n"
      "const unsigned q_full = barriers;\n"
      "const Ring<{2}> k_ring{{barriers + 8}}, v_ring{{barriers + 8 + {5}}};",
      kAlignment - 1, tile_bytes(config_.groups * kGroupRows, depth_), config_.stages,
      tile_bytes(config_.keys, depth_), tile_bytes(config_.keys, columns_), 16 * config_.stages));
  emitter_.line(
      fmt::format("if (threadIdx.x == 0) {{\nptx_barrier_init(q_full, 1);\nk_ring.init({0});\n"
                  "v_ring.init({0});\nptx_barrier_init_fence();\n}}\n__syncthreads();",
                  4 * config_.groups));
}

std::string HopperText::copies(const std::string& view, const std::string& tile, int lines,
                               int columns, const std::string& barrier, const std::string& line,
                               const std::vector<std::string>& coordinates) const {
  std::string text;
  for (int c = 0; c < columns; c += kSlabColumns) {
    text += fmt::format("ptx_copy_box({} + {}, {}, {}, {}, {}, {});\n", tile,
                        c / kSlabColumns * lines * kSlabRowBytes, view, barrier, c, line,
                        fmt::join(coordinates, ", "));
  }
  return text;
}

std::string HopperText::producer() {
  const int rows = config_.groups * kGroupRows;
  std::string text = fmt::format("ptx_barrier_expect(q_full, {});\n", tile_bytes(rows, depth_));
  text += copies(query_view_, "q_tile", rows, depth_, "q_full", "first_row", query_at_);
  text += "for (int use = 0; use < tiles; ++use) {\n";
  for (const auto& [name, view, columns, at] :
       {std::tuple("k", key_view_, depth_, key_at_),
        std::tuple("v", value_view_, columns_, value_at_)}) {
    const int bytes = tile_bytes(config_.keys, columns);
    text += fmt::format("const unsigned {0}_full = {0}_ring.acquire(use, {1});\n", name, bytes);
    text += copies(view, fmt::format("{}_tiles + use % {} * {}", name, config_.stages, bytes),
                   config_.keys, columns, fmt::format("{}_full", name),
                   fmt::format("use * {}", config_.keys), at);
  }
  return text + "}\n";
}

std::string HopperText::consumer() {
  emitter_.open();
  emitter_.line(
      "const int warp = threadIdx.x >> 5 & 3, quad = (threadIdx.x & 31) >> 2, pair = "
      "(threadIdx.x & 3) * 2;");
  emitter_.line(fmt::format("const int own_row = first_row + (group - 1) * {} + warp * 16 + quad;",
                            kGroupRows));
  emitter_.line(
      fmt::format("const unsigned q_own = q_tile + (group - 1) * {};", kGroupRows * kSlabRowBytes));
  declare_state();
  emitter_.line(fmt::format("float s[{}][4], o[{}][4] = {{}};\nunsigned p[{}][4];",
                            config_.keys / 8, columns_ / 8, config_.keys / 16));
  // The last group lets the first one begin.
  emitter_.line(
      fmt::format("if (group == {0}) pass_turn<{0}>({1});", config_.groups, config_.groups - 1));
  emitter_.line("Ring<1>::wait(q_full, 0);");
  const std::string first = first_tile(), next = next_tiles();
  emitter_.line(fmt::format("if (tiles > 0) {{\n{}{}}}", first, next));
  emitter_.line(outputs());
  return emitter_.close();
}

std::string HopperText::first_tile() {
  emitter_.open();
  emitter_.line(
      fmt::format("const int first = 0;\n"
                  "k_ring.wait_full(0);\nstart_scores<{0}, {1}, {2}>(s, q_own, {3}, k_tiles);\n"
                  "wait_products<0>(s);\nk_ring.release(0);",
                  type_, depth_, config_.keys, config_.groups * kGroupRows * kSlabRowBytes));
  emitter_.line(fold_tile());
  emitter_.line(adopt_state());
  emitter_.line(fmt::format("pack_weights<{}, {}>(p, s);", type_, config_.keys));
  return fmt::format("{{\n{}}}\n", emitter_.close());
}

std::string HopperText::next_tiles() {
  const int key_bytes = tile_bytes(config_.keys, depth_);
  const int value_bytes = tile_bytes(config_.keys, columns_);
  emitter_.open();
  emitter_.line(
      fmt::format("const int first = use * {2};\n"
                  "k_ring.wait_full(use);\nawait_turn<{4}>(group - 1);\n"
                  "start_scores<{0}, {1}, {2}>(s, q_own, {3}, k_tiles + use % {5} * {6});\n"
                  "v_ring.wait_full(use - 1);\n"
                  "start_values<{0}, {8}, {2}>(o, p, v_tiles + (use - 1) % {5} * {7});\n"
                  "pass_turn<{4}>(group - 1);\n"
                  "wait_products<1>(s);\nk_ring.release(use);",
                  type_, depth_, config_.keys, config_.groups * kGroupRows * kSlabRowBytes,
                  config_.groups, config_.stages, key_bytes, value_bytes, columns_));
  emitter_.line(fold_tile());
  emitter_.line("wait_products<0>(o);\nv_ring.release(use - 1);");
  emitter_.line(move_values());
  emitter_.line(adopt_state());
  emitter_.line(fmt::format("pack_weights<{}, {}>(p, s);", type_, config_.keys));
  const std::string loop =
      fmt::format("for (int use = 1; use < tiles; ++use) {{\n{}}}\n", emitter_.close());
  return loop + fmt::format(
                    "v_ring.wait_full(tiles - 1);\n"
                    "start_values<{}, {}, {}>(o, p, v_tiles + (tiles - 1) % {} * {});\n"
                    "wait_products<0>(o);\n",
                    type_, columns_, config_.keys, config_.stages, value_bytes);
}

KernelLaunch attention_hopper_kernel(StepBuilder& builder, const AttentionForm& form,
                                     const HopperOperands& operands, const HopperConfig& config) {
  return HopperText(builder, form, operands, config).launch();
}

}  // namespace redfuser
