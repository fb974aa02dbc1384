#include "cpu/steps/cascade/cascade_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "cpu/pointwise/merge_chains.h"
#include "cpu/steps/cascade/cascade_builder.h"
#include "cpu/steps/cascade/cascade_roles.h"
#include "cpu/steps/cascade/magnitude.h"
#include "cpu/steps/cascade/shared_terms.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kTrimGranularity = 64;  // columns that a resident tile shrinks by

CascadeTrim trim_of(ir::ExprPool& pool, const SpecializedStreaming& s, bool resident) {
  const bool maps_back = std::any_of(s.form.cascade.outputs.begin(), s.form.cascade.outputs.end(),
                                     [](auto& output) { return output.maps_back; });
  if (s.stream.empty() || (resident && maps_back)) return {};
  std::vector<CascadeTrim::Fold> folds;
  for (const auto& fold : s.form.accumulators) folds.push_back({fold.reduction, fold.lift});
  return CascadeTrim(pool, s.stream[0], folds);
}

}  // namespace

CascadePlan::CascadePlan(const StepForm& form, const cascade::Streaming& streaming,
                         CascadeRows kind)
    : resident_(kind != CascadeRows::Streamed) {
  if (form.growing != nullptr) growing_.emplace(pool, *form.growing);
  GrowingExtents* const growing = growing_ ? &*growing_ : nullptr;
  SpecializedStreaming s = specialize(pool, form.symbols, streaming, form.growing, growing);
  if (resident_) share_terms(pool, s);
  for (const cascade::CascadeOutput& output : streaming.cascade.outputs) {
    outputs_.push_back(output.value);
    memory_.push_back(memory_of(form, output.value));
  }
  outer_axes_ = s.outer;
  row_axes_ = s.form.cascade.rows;
  outer_ = extent_of(s.outer);
  rows_ = extent_of(s.form.cascade.rows);
  if (empty()) return;
  scope_ = build_cascade(form, *this, s, kind, growing);
  if (growing_) exact_ = growing_->is_exact({&s.form.cascade.rows, &s.stream});
  merge_chains(program);
  if (!growing_) trim_ = trim_of(pool, s, resident_);
  for (const int64_t value : trim_.finite_values()) {
    checked_ += static_cast<double>(
        element_count(dims_of(form.graph, static_cast<ir::ValueId>(value), form.symbols)));
  }
}

void CascadePlan::set_tiles(int64_t rows, int64_t columns) {
  if (empty()) return;
  if (!resident_) program.scopes[static_cast<size_t>(scope_)].tile = columns;
  program.row_tile = std::clamp<int64_t>(rows, 1, rows_);
  program.layout();
  visited_ = visited();
}

StepTime CascadePlan::time(int threads) const {
  if (empty()) return {};
  const int64_t tasks = outer_ * ceil_div(rows_, program.row_tile);
  StepTime time = step_time(task_time(program), static_cast<double>(tasks), threads,
                            output_bytes(program), visited_);
  if (visited_ < 1) time.time += magnitude_time(checked_) / threads;
  return time;
}

double CascadePlan::visited() const {
  const double all = extent_of(program.scopes[static_cast<size_t>(scope_)].axes);
  if (!trim_.possible() || all == 0) return 1;
  constexpr int64_t kSamples = 8;
  TileContext machine;
  machine.axes.assign(static_cast<size_t>(program.axis_slots), 0);
  machine.columns.resize(program.scopes.size());
  machine.parts.resize(program.scopes.size());
  const int64_t blocks = ceil_div(rows_, program.row_tile);
  double visited = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t task = (2 * i + 1) * outer_ * blocks / (2 * kSamples);
    set_outer(machine, task / blocks);
    const int64_t row = task % blocks * program.row_tile;
    set_part(machine, row, std::min(program.row_tile, rows_ - row));
    visited += static_cast<double>(machine.parts[static_cast<size_t>(scope_)].count);
  }
  return visited / (kSamples * all);
}

void CascadePlan::set_outer(TileContext& machine, int64_t point) const {
  for (size_t i = outer_axes_.size(); i-- > 0;) {
    machine.axes[i] = point % extent_of(outer_axes_[i]);
    point /= extent_of(outer_axes_[i]);
  }
}

void CascadePlan::set_part(TileContext& machine, int64_t row, int64_t count) const {
  const AxisIntervals ranges = [&](ir::Expr axis) {
    for (size_t i = 0; i < outer_axes_.size(); ++i) {
      if (outer_axes_[i] == axis) return Interval{machine.axes[i], machine.axes[i]};
    }
    int64_t inner = 1;
    for (size_t i = row_axes_.size(); i-- > 0;) {
      const int64_t extent = extent_of(row_axes_[i]);
      if (row_axes_[i] == axis) {
        const int64_t low = row / inner, high = (row + count - 1) / inner;
        if (low / extent == high / extent) return Interval{low % extent, high % extent};
      }
      inner *= extent;
    }
    return Interval{0, extent_of(axis) - 1};
  };
  const auto part = trim_.part(ranges, kTrimGranularity);
  set_part(machine, {part.begin, part.end - part.begin});
}

void CascadePlan::set_part(TileContext& machine, TileContext::Range part) const {
  const auto index = static_cast<size_t>(scope_);
  machine.parts[index] = part;
  if (resident_) machine.columns[index] = part;
}

void CascadePlan::run(RunContext& context) const {
  for (size_t i = 0; i < outputs_.size(); ++i) place(context, outputs_[i], memory_[i]);
  if (empty()) return;
  const int64_t length = growing_ ? growing_->length(context.symbols) : 0;
  const int64_t rows = growing_ ? growing_->rows(length) : rows_;
  bool trims = visited_ < 1;
  std::vector<double> largest;
  for (size_t i = 0; trims && i < trim_.finite_values().size(); ++i) {
    const auto value = static_cast<size_t>(trim_.finite_values()[i]);
    largest.push_back(largest_magnitude(context.pool, context.values[value]));
    trims = std::isfinite(largest.back());
  }
  trims = trims && trim_.bounded(largest);
  const int64_t blocks = ceil_div(rows, program.row_tile);
  TileRunner runner(program, context, outputs_);
  runner.run(outer_ * blocks, saved, [&](TileContext& machine, int64_t task) {
    set_outer(machine, task / blocks);
    const int64_t row = task % blocks * program.row_tile;
    const int64_t count = std::min(program.row_tile, rows - row);
    if (trims) set_part(machine, row, count);
    if (growing_) {
      growing_->set(machine, length);
      set_part(machine, {0, growing_->columns(length)});
    }
    program.run(machine, row, count);
  });
}

}  // namespace redfuser::cpu
