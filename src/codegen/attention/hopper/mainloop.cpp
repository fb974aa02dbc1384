// The loop of a block over row tiles, whose K and V tiles the producer loads one after the other.
#include "codegen/attention/hopper/mainloop.h"

#include "base/error.h"
#include "codegen/attention/hopper/select.h"
#include "codegen/attention/hopper/text.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {

HopperText::HopperText(StepBuilder& builder, const AttentionSpec& form, const HopperScores& scores,
                       const HopperOperands& operands, const HopperConfig& config)
    : builder_(builder),
      pool_(builder.pool()),
      form_(form),
      operands_(operands),
      config_(config),
      scores_(scores),
      mask_(scores.mask),
      visible_(pool_, form, mask_),
      ranges_(visible_.ranges()),
      by_tile_(cascade::tile_ranges(pool_, scores.by_tile, {form.row}, form.rows.cascade.stream)),
      masked_(scores.masked),
      whole_(scores.whole),
      rows_(form.rows),
      kernel_(builder.kernel()),
      emitter_(kernel_),
      leaves_(emitter_),
      type_(storage_type(form.query->dtype)),
      depth_(padded_size(form.depth->extent()->integer)),
      columns_(padded_size(form.column->extent()->integer)) {
  emitter_.set_fast_exp(true);
  for (const ScoreSpec* score : {&masked_, &whole_}) {
    for (const cascade::Accumulator& accumulator : score->rows.accumulators)
      leaves_.add(accumulator);
  }
  leaves_.add(rows_);
}

ir::Expr HopperText::row_tiles() const { return ceil_div(pool_, form_.row->extent(), rows()); }
ir::Expr HopperText::other_rows() const {
  return product_of(pool_, extents_of(pool_, form_.others));
}

// A persistent kernel: one block per SM takes row tile after row tile; the producer starts the next
// one while the consumers finish the last one.
KernelLaunch HopperText::launch() {
  keys_ = kernel_.size(rows_.length());
  row_count_ = kernel_.size(form_.row->extent());
  declare_memory();
  declare_schedule();
  const std::string produce = producer(), consume = consumer();
  const bool narrow = config_.groups > 2;
  emitter_.line(fmt::format(
      "if (group == 0) {{\nptx_give_registers<{}>();\nif (threadIdx.x == 0) {{\n{}}}\n}} else "
      "{{\nptx_take_registers<{}>();\n{}}}",
      narrow ? 32 : 40, produce, narrow ? 160 : 232, consume));
  KernelLaunch launch =
      kernel_.launch("attention_hopper", rows_.comment,
                     {"device/key_tiles.cuh", "device/attention.cuh", "device/hopper.cuh"}, "",
                     emitter_.close(), (config_.groups + 1) * Warpgroup::kThreads, 1);
  launch.config = config_.parameters();
  launch.shared = hopper_shared_bytes(form_, scores_, config_);
  launch.grid[0] = pool_.make(ir::ExprOp::Min, {pool_.mul(row_tiles(), other_rows()),
                                                pool_.integer(builder_.target.multiprocessors)});
  return launch;
}

void HopperText::declare_memory() {
  emitter_.line(fmt::format(
      "extern __shared__ char memory[];\n"
      "const unsigned base = (ptx_shared_address(memory) + {0}) & ~{0}u;\n"
      "const unsigned q_tiles = base, k_tiles = q_tiles + {1} * {2}, v_tiles = k_tiles "
      "+ {3} * {4}, "
      "barriers = v_tiles + {3} * {5};\n"
      "const Ring<{1}> q_ring{{barriers}};\n"
      "const Ring<{3}> k_ring{{barriers + {6}}}, v_ring{{barriers + {7}}};\n"
      "const Ring<2> work_ring{{barriers + {8}}};\n"
      "int* const works = reinterpret_cast<int*>(memory + 512 + (barriers - "
      "ptx_shared_address(memory)));\n"
      "const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);",
      TmaTile::kAlignment - 1, config_.queries, query_tile().bytes(), config_.stages,
      key_tile().bytes(), value_tile().bytes(), 16 * config_.queries,
      16 * (config_.queries + config_.stages), 16 * (config_.queries + 2 * config_.stages)));
  emitter_.line(fmt::format(
      "if (threadIdx.x == 0) {{\nq_ring.init({0});\nk_ring.init({0});\n"
      "v_ring.init({0});\nwork_ring.init({0});\nptx_barrier_init_fence();\n}}\n__syncthreads();",
      4 * config_.groups));
}

// Row tiles are ordered by sections of heads and batches whose K and V fit into the L2 cache
// together; within a section from the last rows to the first, because the first rows have the
// fewest keys under a causal mask.
void HopperText::declare_schedule() {
  const int64_t section_bytes = int64_t{mask_.skips() ? 16 : 2} << 20;
  ir::Expr bytes = pool_.mul(rows_.length(), pool_.integer(2 * (depth_ + columns_)));
  ir::Expr section =
      pool_.add(pool_.integer(1),
                pool_.floordiv(pool_.integer(section_bytes), pool_.add(bytes, pool_.integer(1))));
  emitter_.line(fmt::format(
      "const int row_tiles = {}, other_rows = {}, section_rows = {}, all_work = row_tiles * "
      "other_rows;",
      as_int(kernel_.size(row_tiles())), as_int(kernel_.size(other_rows())),
      as_int(kernel_.size(section))));
}

void HopperText::place_work() {
  emitter_.line(fmt::format(
      "const int section = work / (section_rows * row_tiles), inside = work - section * "
      "section_rows * row_tiles;\n"
      "const int here = min(section_rows, other_rows - section * section_rows), from_last = "
      "inside / here;\n"
      "const long long other = (section * section_rows + inside - from_last * here) & 0x7fffffff;\n"
      "const int first_row = (row_tiles - 1 - from_last) * {0};\n"
      "const int last_row = static_cast<int>(min_of(first_row + {1}ll, {2} - 1));",
      rows(), rows() - 1, row_count_));
  bind_coordinates(emitter_, form_.others, "other");
  visible_.declare(emitter_, "first_row", "last_row", config_.keys);
}

std::string HopperText::producer() {
  const std::string query_view = kernel_.view(query_tile().view(operands_.query));
  const std::string key_view = kernel_.view(key_tile().view(operands_.key));
  const std::string value_view = kernel_.view(value_tile().view(operands_.value));
  emitter_.open();
  emitter_.line(
      "work_ring.acquire(item);\nworks[item % 2] = work;\nwork_ring.fill(item);\n"
      "if (work >= all_work) break;");
  place_work();
  const std::vector<std::string> query_at = declare_coordinates(emitter_, operands_.query);
  const std::vector<std::string> key_at = declare_coordinates(emitter_, operands_.key);
  const std::vector<std::string> value_at = declare_coordinates(emitter_, operands_.value);
  emitter_.line(
      fmt::format("const unsigned q_full = q_ring.acquire(item, {0});\n"
                  "const unsigned q_tile = q_tiles + item++ % {1} * {0};\n{2}",
                  query_tile().bytes(), config_.queries,
                  query_tile().copies({"q_tile", query_view, "q_full", "first_row", query_at})));
  std::string text;
  for (const auto& [name, view, tile, at] : {std::tuple("k", key_view, key_tile(), key_at),
                                             std::tuple("v", value_view, value_tile(), value_at)}) {
    const int bytes = tile.bytes();
    text += fmt::format("const unsigned {0}_full = {0}_ring.acquire(use, {1});\n", name, bytes);
    text += tile.copies({fmt::format("{}_tiles + use % {} * {}", name, config_.stages, bytes), view,
                         fmt::format("{}_full", name), "line", at});
  }
  emitter_.line(
      fmt::format("for (int tile = 0; tile < tiles; ++tile, ++use) {{\nconst int line = {};\n{}}}",
                  first_key("tile"), text));
  // With a mask, row tiles differ in time: a block takes the next one when it is nearly done.
  emitter_.line(mask_.skips() ? fmt::format("work = next_work({}, all_work);", kernel_.counter())
                              : std::string("work += gridDim.x;"));
  return fmt::format(
      "ptx_prefetch_map({});\nptx_prefetch_map({});\nptx_prefetch_map({});\n"
      "unsigned item = 0, use = 0;\nint work = blockIdx.x;\nwhile (true) {{\n{}}}\n",
      query_view, key_view, value_view, emitter_.close());
}

std::string HopperText::consumer() {
  emitter_.open();
  emitter_.line(
      "const int warp = threadIdx.x >> 5 & 3, quad = (threadIdx.x & 31) >> 2, pair = "
      "(threadIdx.x & 3) * 2;");
  declare_terms();
  // The last warpgroup passes the first turn to the first one.
  emitter_.line(
      fmt::format("if (group == {0}) pass_turn<{0}>({1});", config_.groups, config_.groups - 1));
  emitter_.line("unsigned item = 0, use = 0;");
  emitter_.line(fmt::format("while (true) {{\n{}}}", row_tile()));
  return emitter_.close();
}

std::string HopperText::row_tile() {
  emitter_.open();
  emitter_.line(
      "work_ring.wait_full(item);\nconst int work = works[item % 2];\n__syncwarp();\n"
      "work_ring.release(item);\nif (work >= all_work) break;");
  place_work();
  emitter_.line(fmt::format(
      "const int group_row = first_row + (group - 1) * {0}, last_group_row = "
      "static_cast<int>(min_of(group_row + {1}ll, {2} - 1)), own_row = group_row + warp * 16 + "
      "quad;",
      Warpgroup::kRows, Warpgroup::kRows - 1, row_count_));
  declare_state();
  emitter_.line(fmt::format("float s[{}][4], o[{}][4] = {{}};\nunsigned p[{}][4];",
                            config_.keys / 8, columns_ / 8, config_.keys / 16));
  emitter_.line(
      fmt::format("const unsigned q_own = q_tiles + item % {} * {} + (group - 1) * {};\n"
                  "q_ring.wait_full_together(item);",
                  config_.queries, query_tile().bytes(), TmaTile{Warpgroup::kRows}.slab_bytes()));
  const std::string first = first_tile(), next = next_tiles();
  // A warpgroup without rows takes its turns and releases the tiles unread.
  emitter_.line(fmt::format(
      "if (tiles > 0 && group_row < {0}) {{\n{1}{2}}} else {{\nq_ring.release(item);\n{4}"
      "for (int tile = 0; tile < tiles; ++tile, ++use) {{\n"
      "k_ring.wait_full_together(use);\nk_ring.release(use);\n"
      "if (tile > 0) {{\nawait_turn<{3}>(group - 1);\npass_turn<{3}>(group - 1);\n}}\n"
      "v_ring.wait_full_together(use);\nv_ring.release(use);\n}}\n}}",
      row_count_, first, next, config_.groups, skip_terms()));
  emitter_.line("++item;");
  emitter_.line(outputs());
  return emitter_.close();
}

std::string HopperText::first_key(const std::string& tile) const {
  return fmt::format("{} * {}", visible_.tile(tile), config_.keys);
}

std::string HopperText::first_tile() {
  emitter_.open();
  emitter_.line(fmt::format("const int first = {};", first_key("0")));
  const std::string copies = copy_strips("first");
  if (!copies.empty()) emitter_.line(copies);
  load_terms();
  emitter_.line(fmt::format(
      "k_ring.wait_full(use);\n"
      "start_scores<{0}, {1}, {2}>(s, q_own, {3}, k_tiles + use % {4} * {5});",
      type_, depth_, config_.keys, query_tile().slab_bytes(), config_.stages, key_tile().bytes()));
  store_terms("use");
  emitter_.line("wait_products<0>(s);\nk_ring.release(use);");
  wait_strips();
  emitter_.line(fold_tile());
  const std::string next = copy_strips(first_key("1"));
  if (!next.empty()) emitter_.line(fmt::format("if (tiles > 1) {}", next));
  emitter_.line(adopt_state());
  emitter_.line(fmt::format("pack_weights<{}, {}>(p, s);", type_, config_.keys));
  return fmt::format("{{\n{}}}\n", emitter_.close());
}

std::string HopperText::next_tiles() {
  const int key_bytes = key_tile().bytes();
  const int value_bytes = value_tile().bytes();
  const std::string values =
      fmt::format("start_values<{0}, {1}, {2}>(o, p, v_tiles + use % {3} * {4});", type_, columns_,
                  config_.keys, config_.stages, value_bytes);
  emitter_.open();
  emitter_.line(fmt::format("const int first = {};", first_key("tile")));
  load_terms();
  emitter_.line(
      fmt::format("k_ring.wait_full(use + 1);\nawait_turn<{4}>(group - 1);\n"
                  "start_scores<{0}, {1}, {2}>(s, q_own, {3}, k_tiles + (use + 1) % {5} * {6});\n"
                  "v_ring.wait_full(use);\n{7}\npass_turn<{4}>(group - 1);",
                  type_, depth_, config_.keys, query_tile().slab_bytes(), config_.groups,
                  config_.stages, key_bytes, values));
  store_terms("use + 1");
  emitter_.line("wait_products<1>(s);\nk_ring.release(use + 1);");
  wait_strips();
  emitter_.line(fold_tile());
  const std::string next = copy_strips(first_key("tile + 1"));
  if (!next.empty()) emitter_.line(fmt::format("if (tile + 1 < tiles) {}", next));
  emitter_.line("wait_products<0>(o);\nv_ring.release(use);");
  emitter_.line(move_values());
  emitter_.line(adopt_state());
  emitter_.line(fmt::format("pack_weights<{}, {}>(p, s);", type_, config_.keys));
  const std::string loop =
      fmt::format("for (int tile = 1; tile < tiles; ++tile, ++use) {{\n{}}}\n", emitter_.close());
  return loop + fmt::format(
                    "q_ring.release(item);\nv_ring.wait_full(use);\n{}\n"
                    "wait_products<0>(o);\nv_ring.release(use++);\n",
                    values);
}

KernelLaunch hopper_attention_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const HopperScores& scores, const HopperOperands& operands,
                                     const HopperConfig& config) {
  return HopperText(builder, form, scores, operands, config).launch();
}

}  // namespace redfuser::codegen
