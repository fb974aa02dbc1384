// Which kernels compute a cascade: by the length of its rows, which may be known at run time only.
#include <algorithm>

#include "base/error.h"
#include "codegen/attention/attention.h"
#include "codegen/attention/hopper/config.h"
#include "codegen/attention/mask_check.h"
#include "codegen/rows/rows.h"
#include "codegen/rows/single_pass_select.h"
#include "codegen/select/attention_select.h"

namespace redfuser::codegen {
namespace {

struct SizeClass {
  MultiPassConfig config;
  int64_t capacity;  // 0: no limit
};

// From short rows to long ones. `kept` values per element stay in registers.
std::vector<SizeClass> size_classes(const Target& target, int width, int kept) {
  struct Size {
    int lanes, threads, elements, cluster;
  };
  std::vector<Size> sizes = {
      {32, 256, 8, 1}, {32, 256, 32, 1}, {256, 256, 16, 1}, {256, 256, 32, 1}, {512, 512, 32, 1}};
  if (target.architecture >= 90) {
    sizes.insert(sizes.end(), {{512, 512, 32, 2}, {512, 512, 32, 4}, {512, 512, 32, 8}});
  }
  std::vector<SizeClass> rungs;
  for (const Size& size : sizes) {
    MultiPassConfig config{size.lanes, size.threads, width, 0, size.cluster};
    config.chunks = std::max(1, size.elements / std::max(kept, 1) / width);
    const int64_t capacity = int64_t{1} * size.lanes * config.chunks * width * size.cluster;
    if (!rungs.empty() && capacity <= rungs.back().capacity) continue;
    rungs.push_back({config, capacity});
  }
  rungs.push_back({{512, 512, width, 0, 1}, 0});
  return rungs;
}

bool has_producer(const FlatStreaming& form) {
  bool found = false;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
  }
  return found;
}

void add_rows(StepBuilder& builder, const FlatStreaming& form) {
  ir::ExprPool& pool = builder.pool();
  const auto kept = static_cast<int>(shared_values(form, phases_of(form)).size());
  const int width = has_producer(form) ? 1 : row_width(builder, form);
  ir::Expr length = form.length();
  int64_t below = -1;
  for (const SizeClass& rung : size_classes(builder.target, width, kept)) {
    const int64_t lower = below;
    below = rung.capacity;
    if (length->is_constant()) {
      if (length->integer <= lower) break;
      if (rung.capacity > 0 && length->integer > rung.capacity) continue;
      builder.result.calls.push_back(multi_pass_kernel(builder, form, rung.config));
      break;
    }
    KernelLaunch launch = multi_pass_kernel(builder, form, rung.config);
    ir::Expr fits = pool.make(ir::ExprOp::Less, {pool.integer(lower), length});
    if (rung.capacity > 0) {
      fits = pool.make(ir::ExprOp::And, {fits, pool.make(ir::ExprOp::LessEqual,
                                                         {length, pool.integer(rung.capacity)})});
    }
    launch.grid[0] = pool.select(fits, launch.grid[0], pool.integer(0));
    builder.result.calls.push_back(std::move(launch));
  }
}

// `launch` where the condition (constant or of sizes) holds.
void add_where(StepBuilder& builder, ir::Expr condition, KernelLaunch launch) {
  ir::ExprPool& pool = builder.pool();
  if (condition->is_constant()) {
    if (condition->integer == 0) return;
  } else {
    launch.grid[0] = pool.select(condition, launch.grid[0], pool.integer(0));
  }
  builder.result.calls.push_back(std::move(launch));
}

KernelLaunch whole_kernel(StepBuilder& builder, const AttentionSpec& form,
                          const std::optional<HopperOperands>& operands) {
  if (!operands) return attention_kernel(builder, form);
  const HopperScores scores = hopper_scores(builder.pool(), form);
  return hopper_attention_kernel(builder, form, scores, *operands,
                                 hopper_config(builder, form, scores));
}

// Few rows are split along the keys; of many, the Hopper family takes what it can. False if no
// family takes the form.
bool add_attention(StepBuilder& builder, const AttentionSpec& form) {
  ir::ExprPool& pool = builder.pool();
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size > kLargestSplit) {
    auto kernels = large_head_kernels(builder, form);
    if (!kernels) return false;
    for (KernelLaunch& kernel : *kernels) builder.result.calls.push_back(std::move(kernel));
    return true;
  }
  const auto operands = hopper_operands(builder, form);
  const bool whole = operands || fits_attention_kernel(builder, form);
  ir::Expr few = has_few_rows(builder, form);
  std::optional<KernelLaunch> split;
  if (size <= kLargestSplit && !few->is_constant(0)) {
    split = split_kv_kernel(builder, packed_gqa_rows(pool, form));
  }
  if (!split) few = pool.boolean(false);
  if (!whole && !few->is_constant(1)) return false;
  if (split) add_where(builder, few, std::move(*split));
  if (few->is_constant(1)) return true;
  ir::Expr many = few->is_constant() ? pool.boolean(true) : pool.make(ir::ExprOp::Not, {few});
  add_where(builder, many, whole_kernel(builder, form, operands));
  return true;
}

}  // namespace

ir::Expr has_few_rows(StepBuilder& builder, const AttentionSpec& form) {
  constexpr int64_t kRows = 64, kShare = 8, kKeysOfRow = 16;
  ir::ExprPool& pool = builder.pool();
  ir::Expr rows = form.row ? form.row->extent() : pool.integer(1);
  ir::Expr blocks =
      pool.mul(ceil_div(pool, rows, kRows), product_of(pool, extents_of(pool, form.others)));
  ir::Expr idle = pool.make(ir::ExprOp::Less, {pool.mul(blocks, pool.integer(kShare)),
                                               pool.integer(builder.target.multiprocessors)});
  ir::Expr wide = pool.make(ir::ExprOp::LessEqual,
                            {pool.mul(rows, pool.integer(kKeysOfRow)), form.rows.length()});
  return pool.make(ir::ExprOp::Or, {pool.make(ir::ExprOp::Less, {rows, pool.integer(kRows)}),
                                    pool.make(ir::ExprOp::And, {idle, wide})});
}

void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step,
                      const KernelConfig& choice) {
  if (auto attention = recognize_attention(builder, step)) {
    if (auto check = mask_check(builder, *attention)) {
      builder.result.calls.push_back(std::move(*check));
    }
    add_attention(builder, *attention, choice);
  } else {
    add_fold(builder, flat_streaming(builder, step), choice);
  }
}

std::vector<KernelConfig> cascade_configs(StepBuilder& builder, const fuse::CascadeStep& step,
                                          const KnownSizes& sizes) {
  if (auto attention = recognize_attention(builder, step)) {
    return attention_configs(builder, *attention, sizes);
  }
  const FlatStreaming form = flat_streaming(builder, step);
  return folds(form) ? single_pass_configs(builder, form, sizes) : std::vector<KernelConfig>{};
}

void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step) {
  if (auto attention = recognize_attention(builder, step)) {
    auto check = mask_check(builder, *attention);
    if (add_attention(builder, *attention)) {
      std::vector<GpuCall>& calls = builder.result.calls;
      if (check) calls.insert(calls.begin(), std::move(*check));
      return;
    }
    if (add_materialized_attention(builder, *attention)) return;
  }
  const FlatStreaming form = flat_streaming(builder, step);
  if (folds(form)) {
    add_folds(builder, form);
  } else {
    add_rows(builder, form);
  }
}

}  // namespace redfuser::codegen
