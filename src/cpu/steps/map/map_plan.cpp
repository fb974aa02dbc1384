#include "cpu/steps/map/map_plan.h"

#include <algorithm>

#include "cpu/pointwise/merge_chains.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {
namespace {

// Elements of a tile, of the columns of one whose rows are long, and of square ones.
constexpr int64_t kTileElements[] = {2048, 4096, 16384};
constexpr int64_t kSquares[] = {32, 64};
constexpr int64_t kTaskElements = 32768;  // below this a task is not worth handing out

}  // namespace

MapPlan::MapPlan(const StepForm& form, const MapSection* section, SplitForm split) {
  for (const auto& output : std::get<fuse::MapStep>(form.kind).outputs) {
    outputs_.push_back(output.value);
    memory_.push_back(memory_of(form, output.value));
  }
  build(form, section, split);
}

void MapPlan::build(const StepForm& form, const MapSection* section, SplitForm split_form) {
  const auto& step = std::get<fuse::MapStep>(form.kind);
  Specializer specializer(pool, form.symbols, form.growing);
  std::vector<ir::Expr> axes = specializer.copy_axes(step.axes);
  std::vector<ir::Expr> indices, bodies;
  for (ir::Expr axis : step.axes) indices.push_back(specializer.copy(axis));
  for (const auto& output : step.outputs) bodies.push_back(specializer.copy(output.body));
  for (const AxisSection& part : section != nullptr ? *section : MapSection()) {
    narrow(pool, indices[part.axis], {pool.integer(part.begin), pool.integer(part.end)}, axes,
           {&indices, &bodies});
  }
  std::erase_if(axes, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
  if (form.growing != nullptr) {
    if (const GrowingSizes::Append* append = form.growing->append_of(step)) {
      const ir::Expr along = indices[append->axis];
      narrow(pool, along, {specializer.copy(append->begin), along->extent()}, axes,
             {&indices, &bodies});
      std::erase_if(axes, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
    }
    growing_.emplace(pool, *form.growing);
    growing_->place({&axes, &indices, &bodies});
  }
  std::vector<ir::Expr*> all;
  for (ir::Expr& e : indices) all.push_back(&e);
  for (ir::Expr& e : bodies) all.push_back(&e);
  if (extent_of(axes) == 0) {
    rows_ = 0;
    return;
  }
  split_axes(pool, axes, all);
  auto dims = [&](int64_t value) { return memory_of(form, static_cast<ir::ValueId>(value)); };
  std::vector<ir::Expr> writes;
  for (const Dims& memory : memory_) writes.push_back(flat_offset(pool, indices, memory));
  const MapElements elements{bodies, writes};
  const AxisSplit split = choose_columns(pool, axes, elements, dims, split_form);
  if (form.growing == nullptr) others_ = other_splits(pool, axes, elements, dims);
  TileBuilder builder(pool, program, dims);
  for (ir::Expr axis : split.outer) outer_.push_back({builder.set_outer(axis), extent_of(axis)});
  outers_ = extent_of(split.outer);
  if (growing_) {
    growing_->set_axes(builder, split.rows, split.columns);
    exact_ = growing_->is_exact({&split.rows, &split.columns});
  }
  builder.set_rows(split.rows);
  rows_ = extent_of(split.rows);
  if (!split.columns.empty()) {
    scope_ = builder.fixed_scope(split.columns);
    columns_ = extent_of(split.columns);
  }
  for (size_t i = 0; i < bodies.size(); ++i) {
    const ir::ValueId value = outputs_[i];
    builder.store(static_cast<int>(i), dtype_of(form, value), memory_[i], indices,
                  builder.compile_to_store(bodies[i]), scope_);
  }
  merge_chains(program);
}

std::vector<MapPlan::Tile> MapPlan::tiles() const {
  std::vector<Tile> tiles;
  const auto add = [&](int64_t rows, int64_t columns) {
    const Tile tile(std::clamp<int64_t>(rows, 1, std::max<int64_t>(rows_, 1)),
                    std::clamp<int64_t>(columns, 1, std::max<int64_t>(columns_, 1)));
    if (std::find(tiles.begin(), tiles.end(), tile) == tiles.end()) tiles.push_back(tile);
  };
  for (const int64_t elements : kTileElements) {
    const int64_t columns = std::clamp<int64_t>(columns_, 1, elements);
    add(ceil_div(elements, columns), columns);
  }
  for (const int64_t side : kSquares) add(side, 2 * side);
  return tiles;
}

void MapPlan::set_tile(Tile tile) {
  if (rows_ == 0) return;
  row_tile_ = program.row_tile = std::clamp<int64_t>(tile.first, 1, rows_);
  column_tile_ = std::clamp<int64_t>(tile.second, 1, columns_);
  if (scope_ != kNoScope) program.scopes[static_cast<size_t>(scope_)].tile = column_tile_;
  program.layout();
}

void MapPlan::set_best_tile(int threads) {
  Tile best;
  double least = HUGE_VAL;
  for (const Tile& tile : tiles()) {
    set_tile(tile);
    const double estimate = time(threads).time;
    if (estimate < least) best = tile;
    least = std::min(least, estimate);
  }
  set_tile(best);
  saved = time(threads).saved;
}

StepTime MapPlan::time(int threads) const {
  if (rows_ == 0 || columns_ == 0) return {};
  const auto each = static_cast<double>(tiles_of_task());
  TaskTime task = task_time(program);
  task.time *= each;
  task.floor *= each;
  const int64_t tiles = outers_ * ceil_div(rows_, row_tile_) * ceil_div(columns_, column_tile_);
  return step_time(task, std::ceil(static_cast<double>(tiles) / each), threads,
                   output_bytes(program));
}

void MapPlan::run(RunContext& context) const {
  for (size_t i = 0; i < outputs_.size(); ++i) place(context, outputs_[i], memory_[i]);
  run_allocated(context);
}

void MapPlan::run_allocated(RunContext& context) const {
  if (rows_ == 0 || columns_ == 0) return;
  const int64_t length = growing_ ? growing_->length(context.symbols) : 0;
  const int64_t rows = growing_ ? growing_->rows(length) : rows_;
  const int64_t columns = growing_ ? growing_->columns(length) : columns_;
  const int64_t across = ceil_div(columns, column_tile_);
  const int64_t down = ceil_div(rows, row_tile_), tiles = outers_ * down * across;
  const int64_t per_task = tiles_of_task();
  TileRunner runner(program, context, outputs_);
  runner.run(ceil_div(tiles, per_task), saved, [&](TileContext& machine, int64_t task) {
    if (growing_) growing_->set(machine, length);
    for (int64_t tile = task * per_task; tile < std::min(tiles, (task + 1) * per_task); ++tile) {
      set_outer(machine, tile / across / down);
      const int64_t row = tile / across % down * row_tile_;
      const int64_t column = tile % across * column_tile_;
      if (scope_ != kNoScope) {
        machine.columns[static_cast<size_t>(scope_)] = {column,
                                                        std::min(column_tile_, columns - column)};
      }
      program.run(machine, row, std::min(row_tile_, rows - row));
    }
  });
}

// Values of the outer axes, the innermost first.
void MapPlan::set_outer(TileContext& machine, int64_t number) const {
  for (size_t i = outer_.size(); i-- > 0; number /= outer_[i].extent) {
    machine.axes[static_cast<size_t>(outer_[i].slot)] = number % outer_[i].extent;
  }
}

int64_t MapPlan::tiles_of_task() const {
  const int64_t tiles = outers_ * ceil_div(rows_, row_tile_) * ceil_div(columns_, column_tile_);
  return std::clamp<int64_t>(kTaskElements / (row_tile_ * column_tile_), 1, tiles);
}

SectionedMapPlan::SectionedMapPlan(const StepForm& form, const std::vector<MapSection>& sections) {
  for (const auto& output : std::get<fuse::MapStep>(form.kind).outputs) {
    outputs_.push_back(output.value);
  }
  for (const MapSection& section : sections) {
    parts_.push_back(std::make_unique<MapPlan>(form, &section));
    parts_.back()->set_best_tile(form.threads);
  }
}

double SectionedMapPlan::time(int threads) const {
  double time = 0;
  for (const auto& part : parts_) time += part->time(threads).time;
  return time;
}

void SectionedMapPlan::run(RunContext& context) const {
  for (ir::ValueId value : outputs_) allocate(context, value);
  for (const auto& part : parts_) part->run_allocated(context);
}

}  // namespace redfuser::cpu
