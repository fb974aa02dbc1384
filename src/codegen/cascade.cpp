// Which kernels compute a cascade: by the length of its rows, which may be known at run time only.
#include <algorithm>

#include "base/error.h"
#include "codegen/attention.h"
#include "codegen/attention_hopper.h"
#include "codegen/rows.h"

namespace redfuser {
namespace {

struct Rung {
  RowConfig config;
  int64_t capacity;  // 0: no limit
};

// From short rows to long ones. `kept` values per element stay in registers.
std::vector<Rung> ladder(const Target& target, int width, int kept) {
  struct Size {
    int lanes, threads, elements, cluster;
  };
  std::vector<Size> sizes = {
      {32, 256, 8, 1}, {32, 256, 32, 1}, {256, 256, 16, 1}, {256, 256, 32, 1}, {512, 512, 32, 1}};
  if (target.architecture >= 90) {
    sizes.insert(sizes.end(), {{512, 512, 32, 2}, {512, 512, 32, 4}, {512, 512, 32, 8}});
  }
  std::vector<Rung> rungs;
  for (const Size& size : sizes) {
    RowConfig config{size.lanes, size.threads, width, 0, size.cluster};
    config.chunks = std::max(1, size.elements / std::max(kept, 1) / width);
    const int64_t capacity = int64_t{1} * size.lanes * config.chunks * width * size.cluster;
    if (!rungs.empty() && capacity <= rungs.back().capacity) continue;
    rungs.push_back({config, capacity});
  }
  rungs.push_back({{512, 512, width, 0, 1}, 0});
  return rungs;
}

bool has_producer(const RowForm& form) {
  bool found = false;
  for (Expr root : form.streamed()) {
    visit(root, [&](Expr e) { found |= e->op == ExprOp::Reduce; });
  }
  return found;
}

void add_rows(StepBuilder& builder, const RowForm& form) {
  ExprPool& pool = builder.pool();
  const auto kept = static_cast<int>(shared_values(form, phases_of(form)).size());
  const int width = has_producer(form) ? 1 : row_width(builder, form);
  Expr length = form.length();
  int64_t below = -1;
  for (const Rung& rung : ladder(builder.target, width, kept)) {
    const int64_t lower = below;
    below = rung.capacity;
    if (length->is_constant()) {
      if (length->integer <= lower) break;
      if (rung.capacity > 0 && length->integer > rung.capacity) continue;
      builder.result.calls.push_back(row_kernel(builder, form, rung.config));
      break;
    }
    KernelLaunch launch = row_kernel(builder, form, rung.config);
    Expr fits = pool.make(ExprOp::Less, {pool.integer(lower), length});
    if (rung.capacity > 0) {
      fits = pool.make(ExprOp::And,
                       {fits, pool.make(ExprOp::LessEqual, {length, pool.integer(rung.capacity)})});
    }
    launch.grid[0] = pool.select(fits, launch.grid[0], pool.integer(0));
    builder.result.calls.push_back(std::move(launch));
  }
}

// Fewer rows than a warpgroup has are left to the portable family, which takes head sizes up to
// 128. False if no family takes the form.
bool add_attention(StepBuilder& builder, const AttentionForm& form) {
  constexpr int64_t kFewestRows = 64, kLargestPortable = 128;
  ExprPool& pool = builder.pool();
  const auto operands = hopper_operands(builder, form);
  const bool portable = form.depth->extent()->integer <= kLargestPortable &&
                        form.column->extent()->integer <= kLargestPortable;
  Expr rows = form.row ? form.row->extent() : pool.integer(1);
  const bool few = rows->is_constant() && rows->integer < kFewestRows;
  if (!operands && !portable) return false;
  if (!operands || (few && portable)) {
    builder.result.calls.push_back(attention_kernel(builder, form));
    return true;
  }
  const HopperScores scores = hopper_scores(pool, form);
  const HopperConfig config = hopper_config(builder, form, scores);
  KernelLaunch hopper = attention_hopper_kernel(builder, form, scores, *operands, config);
  if (!rows->is_constant() && portable) {
    KernelLaunch other = attention_kernel(builder, form);
    Expr fits = pool.make(ExprOp::LessEqual, {pool.integer(kFewestRows), rows});
    hopper.grid[0] = pool.select(fits, hopper.grid[0], pool.integer(0));
    other.grid[0] = pool.select(fits, pool.integer(0), other.grid[0]);
    builder.result.calls.push_back(std::move(other));
  }
  builder.result.calls.push_back(std::move(hopper));
  return true;
}

}  // namespace

void generate_cascade(StepBuilder& builder, const CascadeStep& step) {
  if (auto attention = attention_form(builder, step)) {
    if (add_attention(builder, *attention)) return;
  }
  const RowForm form = row_form(builder, step);
  if (folds(form)) {
    add_folds(builder, form);
  } else {
    add_rows(builder, form);
  }
}

}  // namespace redfuser
