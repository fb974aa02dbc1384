#include "codegen/rows/multi_pass_select.h"

#include <algorithm>
#include <cmath>

#include "codegen/rows/multi_pass.h"
#include "codegen/rows/row_reads.h"

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

// Microseconds until a row's producers have read their operands: sums that a thread computes one
// after the other have few loads in flight.
double sweep_time(StepBuilder& builder, const select::Work& work, const FlatStreaming& form) {
  constexpr double kSweepRate = 1000;  // bytes in a microsecond, measured
  ir::Expr rows = product_of(builder.pool(), extents_of(builder.pool(), form.cascade.rows));
  const double count = static_cast<double>(std::max<int64_t>(builder.sizes.of(rows), 1));
  return select::kLaunchTime + std::min(work.bytes, work.accesses / count) / kSweepRate;
}

}  // namespace

void add_multi_pass(StepBuilder& builder, const FlatStreaming& form) {
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

double multi_pass_time(StepBuilder& builder, const FlatStreaming& form) {
  std::vector<ir::Expr> axes = form.cascade.rows;
  axes.push_back(form.cascade.stream);
  const std::vector<ir::Expr> roots = form.streamed();
  select::Work work = select::work_of(roots, axes, builder.sizes);
  // A block has at most one row, and in every pass a thread processes its elements sequentially.
  constexpr double kMostLanes = 512;
  const double length = static_cast<double>(std::max<int64_t>(builder.sizes.of(form.length()), 1));
  const double lanes = std::min(length, kMostLanes);
  work.points *= lanes / length;
  work.steps = std::max(work.steps, 1.0) * std::ceil(length / lanes) *
               static_cast<double>(phases_of(form).size());
  const double time = select::time_of(work, builder.target);
  return has_producer(form) ? std::max(time, sweep_time(builder, work, form)) : time;
}

}  // namespace redfuser::codegen
