// Pointwise steps: a tile program over blocks of rows and columns.
#include "cpu/steps/map_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kTileElements = 4096;   // a few registers of this size fit the first-level cache
constexpr int64_t kSquare = 64;           // of a tile that is read across its rows
constexpr int64_t kTaskElements = 32768;  // below this a task is not worth handing out

struct MapPlan {
  ir::ExprPool pool;
  TileProgram program;
  int64_t rows = 1, columns = 1, row_tile = 1, column_tile = 1;
  int scope = kNoScope;
};

class MapKernel final : public Kernel {
 public:
  MapKernel(const ir::Graph& graph, fuse::MapStep step)
      : step_(std::move(step)), cache_(graph, symbols(graph, step_)) {
    for (const auto& output : step_.outputs) outputs_.push_back(output.value);
  }

  void run(RunContext& context) const override {
    for (ir::ValueId value : outputs_) allocate(context, value);
    auto plan = cache_.get(context, [&](auto symbols) { return make(context.graph, symbols); });
    if (plan->rows == 0 || plan->columns == 0) return;
    const int64_t across = ceil_div(plan->columns, plan->column_tile);
    const int64_t tiles = ceil_div(plan->rows, plan->row_tile) * across;
    const int64_t tile_elements =
        std::min(plan->rows, plan->row_tile) * std::min(plan->columns, plan->column_tile);
    const int64_t per_task = std::max<int64_t>(1, kTaskElements / tile_elements);
    TileRunner runner(plan->program, context, outputs_);
    runner.run(ceil_div(tiles, per_task), [&](TileContext& machine, int64_t task) {
      for (int64_t tile = task * per_task; tile < std::min(tiles, (task + 1) * per_task); ++tile) {
        const int64_t row = tile / across * plan->row_tile;
        const int64_t column = tile % across * plan->column_tile;
        if (plan->scope != kNoScope) {
          machine.columns[static_cast<size_t>(plan->scope)] = {
              column, std::min(plan->column_tile, plan->columns - column)};
        }
        plan->program.run(machine, row, std::min(plan->row_tile, plan->rows - row));
      }
    });
  }

  KernelForm form(std::span<const int64_t> symbols) const override {
    const auto plan = cache_.find(symbols);
    if (plan == nullptr) return {kTileProgramFamily, ""};
    return {kTileProgramFamily,
            fmt::format("tiles of {} rows by {} columns", plan->row_tile, plan->column_tile)};
  }

 private:
  static std::vector<int64_t> symbols(const ir::Graph& graph, const fuse::MapStep& step) {
    std::vector<ir::Expr> expressions = step.axes;
    std::vector<ir::ValueId> values;
    for (const auto& output : step.outputs) {
      expressions.push_back(output.body);
      values.push_back(output.value);
    }
    return symbols_of(graph, expressions, values);
  }

  std::shared_ptr<const MapPlan> make(const ir::Graph& graph,
                                      std::span<const int64_t> symbols) const {
    auto plan = std::make_shared<MapPlan>();
    ir::ExprPool& pool = plan->pool;
    Specializer specializer(pool, symbols);
    std::vector<ir::Expr> axes = specializer.copy_axes(step_.axes);
    std::vector<ir::Expr> indices, bodies;
    for (ir::Expr axis : step_.axes) indices.push_back(specializer.copy(axis));
    for (const auto& output : step_.outputs) bodies.push_back(specializer.copy(output.body));
    std::vector<ir::Expr*> all;
    for (ir::Expr& e : indices) all.push_back(&e);
    for (ir::Expr& e : bodies) all.push_back(&e);
    if (extent_of(axes) == 0) {
      plan->rows = 0;
      return plan;
    }
    split_axes(pool, axes, all);
    auto dims = [&](int64_t value) {
      return dims_of(graph, static_cast<ir::ValueId>(value), symbols);
    };
    const AxisSplit split = choose_columns(pool, axes, bodies, dims);
    TileBuilder builder(pool, plan->program, dims);
    builder.set_rows(split.rows);
    plan->rows = extent_of(split.rows);
    if (!split.columns.empty()) {
      plan->scope = builder.fixed_scope(split.columns);
      plan->columns = extent_of(split.columns);
    }
    for (size_t i = 0; i < bodies.size(); ++i) {
      const ir::ValueId value = outputs_[i];
      builder.store(static_cast<int>(i), graph.values[static_cast<size_t>(value)].dtype,
                    dims_of(graph, value, symbols), indices, builder.compile_to_store(bodies[i]),
                    plan->scope);
    }
    choose_tiles(*plan, split.strided);
    return plan;
  }

  static void choose_tiles(MapPlan& plan, bool strided) {
    if (strided) {
      plan.column_tile = std::min<int64_t>(plan.columns, 2 * kSquare);
      plan.row_tile = std::min(plan.rows, kSquare);
    } else {
      plan.column_tile = std::min<int64_t>(plan.columns, kTileElements);
      plan.row_tile = std::min(plan.rows, ceil_div(kTileElements, plan.column_tile));
    }
    plan.program.row_tile = plan.row_tile;
    if (plan.scope != kNoScope) {
      plan.program.scopes[static_cast<size_t>(plan.scope)].tile = plan.column_tile;
    }
    plan.program.layout();
  }

  fuse::MapStep step_;
  PlanCache<MapPlan> cache_;
  std::vector<ir::ValueId> outputs_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::MapStep& step) {
  return std::make_unique<cpu::MapKernel>(graph, step);
}

}  // namespace redfuser::cpu
