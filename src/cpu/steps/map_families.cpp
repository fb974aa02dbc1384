#include "cpu/steps/map_families.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/estimate/program_time.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {
namespace {

constexpr const char* kMap = "map";
// Elements of a tile, of the columns of one whose rows are long, and of square ones.
constexpr int64_t kTileElements[] = {2048, 4096, 16384};
constexpr int64_t kSquares[] = {32, 64};
constexpr int64_t kTaskElements = 32768;  // below this a task is not worth handing out

class MapPlan final : public TilePlan {
 public:
  MapPlan(const ir::Graph& graph, std::span<const int64_t> symbols, const fuse::MapStep& step) {
    for (const auto& output : step.outputs) outputs_.push_back(output.value);
    build(graph, symbols, step);
  }

  void set_tiles(int64_t rows, int64_t columns) {
    if (rows_ == 0) return;
    row_tile_ = program.row_tile = std::clamp<int64_t>(rows, 1, rows_);
    column_tile_ = std::clamp<int64_t>(columns, 1, columns_);
    if (scope_ != kNoScope) program.scopes[static_cast<size_t>(scope_)].tile = column_tile_;
    program.layout();
  }

  StepTime time(int threads) const {
    if (rows_ == 0 || columns_ == 0) return {};
    const auto each = static_cast<double>(tiles_of_task());
    TaskTime task = task_time(program);
    task.time *= each;
    task.floor *= each;
    const int64_t tiles = ceil_div(rows_, row_tile_) * ceil_div(columns_, column_tile_);
    return step_time(task, std::ceil(static_cast<double>(tiles) / each), threads,
                     output_bytes(program));
  }

  void run(RunContext& context) const override {
    for (ir::ValueId value : outputs_) allocate(context, value);
    if (rows_ == 0 || columns_ == 0) return;
    const int64_t across = ceil_div(columns_, column_tile_);
    const int64_t tiles = ceil_div(rows_, row_tile_) * across;
    const int64_t per_task = tiles_of_task();
    TileRunner runner(program, context, outputs_);
    runner.run(ceil_div(tiles, per_task), alone, [&](TileContext& machine, int64_t task) {
      for (int64_t tile = task * per_task; tile < std::min(tiles, (task + 1) * per_task); ++tile) {
        const int64_t row = tile / across * row_tile_;
        const int64_t column = tile % across * column_tile_;
        if (scope_ != kNoScope) {
          machine.columns[static_cast<size_t>(scope_)] = {
              column, std::min(column_tile_, columns_ - column)};
        }
        program.run(machine, row, std::min(row_tile_, rows_ - row));
      }
    });
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

 private:
  void build(const ir::Graph& graph, std::span<const int64_t> symbols, const fuse::MapStep& step) {
    Specializer specializer(pool, symbols);
    std::vector<ir::Expr> axes = specializer.copy_axes(step.axes);
    std::vector<ir::Expr> indices, bodies;
    for (ir::Expr axis : step.axes) indices.push_back(specializer.copy(axis));
    for (const auto& output : step.outputs) bodies.push_back(specializer.copy(output.body));
    std::vector<ir::Expr*> all;
    for (ir::Expr& e : indices) all.push_back(&e);
    for (ir::Expr& e : bodies) all.push_back(&e);
    if (extent_of(axes) == 0) {
      rows_ = 0;
      return;
    }
    split_axes(pool, axes, all);
    auto dims = [&](int64_t value) {
      return dims_of(graph, static_cast<ir::ValueId>(value), symbols);
    };
    const AxisSplit split = choose_columns(pool, axes, bodies, dims);
    TileBuilder builder(pool, program, dims);
    builder.set_rows(split.rows);
    rows_ = extent_of(split.rows);
    if (!split.columns.empty()) {
      scope_ = builder.fixed_scope(split.columns);
      columns_ = extent_of(split.columns);
    }
    for (size_t i = 0; i < bodies.size(); ++i) {
      const ir::ValueId value = outputs_[i];
      builder.store(static_cast<int>(i), graph.values[static_cast<size_t>(value)].dtype,
                    dims_of(graph, value, symbols), indices, builder.compile_to_store(bodies[i]),
                    scope_);
    }
  }

  int64_t tiles_of_task() const {
    const int64_t tiles = ceil_div(rows_, row_tile_) * ceil_div(columns_, column_tile_);
    return std::clamp<int64_t>(kTaskElements / (row_tile_ * column_tile_), 1, tiles);
  }

  std::vector<ir::ValueId> outputs_;
  int64_t rows_ = 1, columns_ = 1, row_tile_ = 1, column_tile_ = 1;
  int scope_ = kNoScope;
};

std::shared_ptr<MapPlan> program(StepForm& form) {
  return std::make_shared<MapPlan>(form.graph, form.symbols, std::get<fuse::MapStep>(form.kind));
}

select::FamilyAnswer offer_map(StepForm& form) {
  const auto plan = form.program_of<MapPlan>(kMap, [&] { return program(form); });
  std::vector<std::pair<int64_t, int64_t>> tiles;
  const auto add = [&](int64_t rows, int64_t columns) {
    const std::pair tile(std::clamp<int64_t>(rows, 1, std::max<int64_t>(plan->rows(), 1)),
                         std::clamp<int64_t>(columns, 1, std::max<int64_t>(plan->columns(), 1)));
    if (std::find(tiles.begin(), tiles.end(), tile) == tiles.end()) tiles.push_back(tile);
  };
  for (const int64_t elements : kTileElements) {
    const int64_t columns = std::clamp<int64_t>(plan->columns(), 1, elements);
    add(ceil_div(elements, columns), columns);
  }
  for (const int64_t side : kSquares) add(side, 2 * side);
  std::vector<select::Candidate> candidates;
  for (const auto& [rows, columns] : tiles) {
    plan->set_tiles(rows, columns);
    candidates.push_back(
        {{kMap, {{"rows", static_cast<int>(rows)}, {"columns", static_cast<int>(columns)}}},
         plan->time(form.threads).time});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

std::shared_ptr<const StepPlan> emit_map(StepForm& form, const select::KernelConfig& choice) {
  auto plan = form.take<MapPlan>(kMap, [&] { return program(form); });
  plan->set_tiles(choice.at("rows"), choice.at("columns"));
  plan->alone = plan->time(form.threads).alone;
  return plan;
}

constexpr Family kFamilies[] = {{kMap, offer_map, emit_map}};

}  // namespace

std::span<const Family> map_families() { return kFamilies; }

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::MapStep& step) {
  std::vector<ir::Expr> expressions = step.axes;
  std::vector<ir::ValueId> values;
  for (const auto& output : step.outputs) {
    expressions.push_back(output.body);
    values.push_back(output.value);
  }
  return symbols_of(graph, expressions, values);
}

}  // namespace redfuser::cpu
