// Reductions outside of cascades: a tile program whose reductions are loops or row reductions.
#include "cpu/steps/reduce_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cascade/visibility/running.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/reduce_plan.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kTileElements = 8192;
constexpr int64_t kMaxColumns = 1024;

// Which output axes become columns; none where the reduced axis itself serves better as columns.
class ColumnsOfReduction {
 public:
  ColumnsOfReduction(ir::ExprPool& pool, const std::vector<ir::Expr>& axes, ir::Expr body,
                     const TileBuilder::DimsOf& dims)
      : pool_(pool), axes_(axes), dims_(dims) {
    visit(body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) reductions_.push_back(e);
    });
  }

  std::vector<ir::Expr> choose() const {
    if (axes_.empty()) return {};
    bool ranked = false;
    std::vector<ir::Expr> ranks;
    for (ir::Expr reduce : reductions_) {
      if (!picks_element(reduce->reduction)) continue;
      ranked = true;
      for (ir::Expr axis : axes_) {
        const bool rank = reduce->args.size() > 2 && reduce->args[2]->depends_on(axis);
        if (rank && !reduce->body()->depends_on(axis)) ranks.push_back(axis);
      }
    }
    if (ranked) return ranks.empty() ? ranks : std::vector<ir::Expr>{ranks[0]};
    if (along_memory()) return {};
    return {axes_.back()};
  }

 private:
  // A reduced axis is innermost in a read, and the reduction is not a matrix product.
  bool along_memory() const {
    bool unit = true, left = false, right = false;
    std::vector<ir::Expr> bound;
    for (ir::Expr reduce : reductions_) bound.push_back(reduce->bound_axis());
    for (ir::Expr reduce : reductions_) {
      visit(reduce->body(), [&](ir::Expr e) {
        if (e->op != ir::ExprOp::Read || e->integer < 0 || !e->depends_on(reduce->bound_axis()))
          return;
        const ReadStrides strides = strides_of(pool_, e, bound, dims_);
        bool innermost = false;
        for (size_t i = 0; i < bound.size(); ++i) {
          innermost |= strides.known[i] && strides.strides[i] == 1;
        }
        unit &= innermost;
        (e->depends_on(axes_.back()) ? right : left) = true;
      });
    }
    return unit && !(left && right);
  }

  ir::ExprPool& pool_;
  const std::vector<ir::Expr>& axes_;
  const TileBuilder::DimsOf& dims_;
  std::vector<ir::Expr> reductions_;
};

// The axis of `axes` that the body's reduction runs along; null for other bodies.
ir::Expr running_axis(ir::ExprPool& pool, const std::vector<ir::Expr>& axes, ir::Expr body) {
  const auto running = cascade::running_body(pool, body);
  const bool found = running && std::count(axes.begin(), axes.end(), running->axis) > 0;
  return found ? running->axis : nullptr;
}

void choose_tiles(ReducePlan& plan) {
  plan.column_tile = plan.running ? plan.columns : std::min(plan.columns, kMaxColumns);
  if (plan.scope != kNoScope) {
    plan.program.scopes[static_cast<size_t>(plan.scope)].tile = plan.column_tile;
  }
  int64_t widest = plan.column_tile;
  for (const Scope& scope : plan.program.scopes) widest = std::max(widest, scope.tile);
  // Several tasks for every thread.
  const int64_t shared = ceil_div(plan.rows * ceil_div(plan.columns, plan.column_tile), 16);
  plan.row_tile = std::clamp<int64_t>(std::min(kTileElements / widest, shared), 1, plan.rows);
  plan.program.row_tile = plan.row_tile;
  plan.program.layout();
}

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const ir::Graph& graph, fuse::ReduceStep step)
      : step_(std::move(step)), cache_(graph, symbols(graph, step_)) {}

  void run(RunContext& context) const override {
    auto plan = cache_.get(context, [&](std::span<const int64_t> symbols) {
      auto made = std::make_shared<ReducePlan>();
      Specializer specializer(made->pool, symbols);
      std::vector<ir::Expr> indices;
      for (ir::Expr axis : step_.axes) indices.push_back(specializer.copy(axis));
      made->build(context.graph, symbols, step_.value, indices, specializer.copy(step_.body));
      return made;
    });
    plan->run(context, step_.value);
  }

  KernelForm form(std::span<const int64_t> symbols) const override {
    const auto plan = cache_.find(symbols);
    if (plan == nullptr) return {kTileProgramFamily, ""};
    return {kTileProgramFamily,
            fmt::format("tiles of {} rows by {} columns", plan->row_tile, plan->column_tile)};
  }

 private:
  static std::vector<int64_t> symbols(const ir::Graph& graph, const fuse::ReduceStep& step) {
    std::vector<ir::Expr> expressions = step.axes;
    expressions.push_back(step.body);
    return symbols_of(graph, expressions, {&step.value, 1});
  }

  fuse::ReduceStep step_;
  PlanCache<ReducePlan> cache_;
};

}  // namespace

void ReducePlan::build(const ir::Graph& graph, std::span<const int64_t> symbols, ir::ValueId value,
                       std::vector<ir::Expr> indices, ir::Expr body) {
  std::vector<ir::Expr> axes;
  for (ir::Expr index : indices) {
    if (index->op == ir::ExprOp::Axis) axes.push_back(index);
  }
  rows = extent_of(axes);
  if (rows == 0) return;
  std::vector<ir::Expr*> all{&body};
  for (ir::Expr& e : indices) all.push_back(&e);
  const ir::Expr kept = running_axis(pool, axes, body);
  std::erase(axes, kept);
  split_axes(pool, axes, all);
  const TileBuilder::DimsOf dims = [&](int64_t id) {
    return dims_of(graph, static_cast<ir::ValueId>(id), symbols);
  };
  running = kept != nullptr;
  const std::vector<ir::Expr> column_axes =
      running ? std::vector<ir::Expr>{kept} : ColumnsOfReduction(pool, axes, body, dims).choose();
  std::vector<ir::Expr> row_axes;
  for (ir::Expr axis : axes) {
    if (std::find(column_axes.begin(), column_axes.end(), axis) == column_axes.end()) {
      row_axes.push_back(axis);
    }
  }
  TileBuilder builder(pool, program, dims);
  if (running) builder.bind_running(*cascade::running_body(pool, body));
  builder.set_rows(row_axes);
  rows = extent_of(row_axes);
  if (!column_axes.empty()) {
    scope = builder.fixed_scope(column_axes);
    columns = extent_of(column_axes);
  }
  builder.store(0, graph.values[static_cast<size_t>(value)].dtype, dims_of(graph, value, symbols),
                indices, builder.compile_to_store(body), scope);
  choose_tiles(*this);
}

void ReducePlan::run(RunContext& context, ir::ValueId value) const {
  allocate(context, value);
  if (rows == 0 || columns == 0) return;
  const int64_t across = ceil_div(columns, column_tile);
  const int64_t tiles = ceil_div(rows, row_tile) * across;
  TileRunner runner(program, context, {&value, 1});
  runner.run(tiles, [&](TileContext& machine, int64_t tile) {
    const int64_t row = tile / across * row_tile;
    const int64_t column = tile % across * column_tile;
    if (scope != kNoScope) {
      machine.columns[static_cast<size_t>(scope)] = {column,
                                                     std::min(column_tile, columns - column)};
    }
    program.run(machine, row, std::min(row_tile, rows - row));
  });
}

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::ReduceStep& step) {
  return std::make_unique<cpu::ReduceKernel>(graph, step);
}

}  // namespace redfuser::cpu
