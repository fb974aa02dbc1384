#include "cpu/steps/reduce_plan.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "cascade/visibility/running.h"
#include "cpu/pointwise/merge_chains.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/ranking.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

// What may be columns beside the reduced axis.
class ColumnsOfReduction {
 public:
  ColumnsOfReduction(const std::vector<ir::Expr>& axes, ir::Expr body) : axes_(axes) {
    visit(body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) reductions_.push_back(e);
    });
  }

  // The output axis, or why none can be columns.
  std::variant<ir::Expr, std::string> output_axis() const {
    if (axes_.empty()) return "the output has one element";
    const auto ranks = rank_axes();
    if (!ranks) return axes_.back();
    if (!ranks->empty()) return ranks->front();
    if (!finds_one()) return "the columns of a ranked reduction are its elements";
    return axes_.back();
  }
  // Why the reduced axis, or several of the output, cannot be columns; else empty.
  std::string refuses_others() const {
    const auto ranks = rank_axes();
    return ranks && !ranks->empty() ? "all ranks of a row are found together" : "";
  }

 private:
  // Axes of the output that only number ranks; nullopt without ranked reductions.
  std::optional<std::vector<ir::Expr>> rank_axes() const {
    std::optional<std::vector<ir::Expr>> ranks;
    for (ir::Expr reduce : reductions_) {
      if (!picks_element(reduce->reduction)) continue;
      if (!ranks) ranks.emplace();
      for (ir::Expr axis : axes_) {
        const bool rank = reduce->args.size() > 2 && reduce->args[2]->depends_on(axis);
        if (rank && !reduce->body()->depends_on(axis)) ranks->push_back(axis);
      }
    }
    return ranks;
  }

  // Whether each ranked reduction is of the best element alone, whose number int32 holds.
  bool finds_one() const {
    constexpr int64_t kMost = int64_t{1} << 31;
    return std::all_of(reductions_.begin(), reductions_.end(), [](ir::Expr reduce) {
      if (!picks_element(reduce->reduction)) return true;
      return reduce->args.size() <= 2 && extent_of(reduce->bound_axis()) < kMost;
    });
  }

  const std::vector<ir::Expr>& axes_;
  std::vector<ir::Expr> reductions_;
};

// The axis of `axes` that the body's reduction runs along; null for other bodies.
ir::Expr running_axis(ir::ExprPool& pool, const std::vector<ir::Expr>& axes, ir::Expr body) {
  const auto running = cascade::running_body(pool, body);
  const bool found = running && std::count(axes.begin(), axes.end(), running->axis) > 0;
  return found ? running->axis : nullptr;
}

}  // namespace

std::string ReducePlan::build(const ir::Graph& graph, std::span<const int64_t> symbols,
                              const MakeBody& make, ReduceColumnsKind kind) {
  auto [value, indices, body] = make(pool);
  value_ = value;
  std::vector<ir::Expr> axes;
  for (ir::Expr index : indices) {
    if (index->op == ir::ExprOp::Axis) axes.push_back(index);
  }
  const ir::Expr kept = running_axis(pool, axes, body);
  const bool beside = kind == ReduceColumnsKind::BesideRunning;
  const bool running = kind == ReduceColumnsKind::Running || beside;
  if (running && kept == nullptr) return "no result continues the one before it";
  if (!running && kept != nullptr) return "each result would be computed from the first element on";
  rows_ = extent_of(axes);
  if (rows_ == 0) return kind == ReduceColumnsKind::Output ? "there is nothing to compute" : "";
  std::vector<ir::Expr*> all{&body};
  for (ir::Expr& e : indices) all.push_back(&e);
  std::erase(axes, kept);
  split_axes(pool, axes, all);
  std::vector<ir::Expr> column_axes;
  if (running && !beside) column_axes = {kept};
  const TileBuilder::DimsOf dims = [&](int64_t id) {
    return dims_of(graph, static_cast<ir::ValueId>(id), symbols);
  };
  const ColumnsOfReduction choice(axes, body);
  if (kind == ReduceColumnsKind::Reduced || kind == ReduceColumnsKind::Joined) {
    if (std::string refusal = choice.refuses_others(); !refusal.empty()) return refusal;
  }
  if (kind != ReduceColumnsKind::Reduced && kind != ReduceColumnsKind::Running) {
    const auto found = choice.output_axis();
    if (const auto* refusal = std::get_if<std::string>(&found)) return *refusal;
    column_axes = {std::get<ir::Expr>(found)};
  }
  if (kind == ReduceColumnsKind::Joined) {
    const std::vector<ir::Expr> bodies{body}, writes{flat_offset(pool, indices, dims(value))};
    column_axes = choose_columns(pool, axes, {bodies, writes}, dims).columns;
    if (column_axes.size() == 1) return "an axis of the output has columns enough";
  }
  std::vector<ir::Expr> row_axes;
  for (ir::Expr axis : axes) {
    if (std::find(column_axes.begin(), column_axes.end(), axis) == column_axes.end()) {
      row_axes.push_back(axis);
    }
  }
  if (beside) {
    row_axes.push_back(kept);
    run_length_ = extent_of(kept);
  }
  TileBuilder builder(pool, program, dims);
  if (running) {
    builder.bind_running(*cascade::running_body(pool, body), beside ? run_length_ : 0);
  }
  builder.set_rows(row_axes);
  rows_ = extent_of(row_axes);
  if (!column_axes.empty()) {
    scope_ = builder.fixed_scope(column_axes);
    columns_ = extent_of(column_axes);
  }
  builder.store(0, graph.values[static_cast<size_t>(value)].dtype, dims_of(graph, value, symbols),
                indices, builder.compile_to_store(body), scope_);
  // Short rows are loaded as one, and the lanes of several combined at once.
  constexpr int64_t kLongRow = 64;
  if (widest() >= kLongRow) merge_chains(program);
  return "";
}

int64_t ReducePlan::widest() const {
  int64_t widest = 1;
  for (size_t i = 0; i < program.scopes.size(); ++i) {
    if (static_cast<int>(i) != scope_) widest = std::max(widest, program.scopes[i].tile);
  }
  return widest;
}

void ReducePlan::set_tiles(int64_t rows, int64_t columns) {
  if (rows_ == 0) return;
  row_tile_ = std::clamp<int64_t>(ceil_div(rows, run_length_) * run_length_, 1, rows_);
  column_tile_ = std::clamp<int64_t>(columns, 1, std::max<int64_t>(columns_, 1));
  if (scope_ != kNoScope) program.scopes[static_cast<size_t>(scope_)].tile = column_tile_;
  program.row_tile = row_tile_;
  program.layout();
}

StepTime ReducePlan::time(int threads) const {
  if (rows_ == 0 || columns_ == 0) return {};
  const int64_t tasks = ceil_div(rows_, row_tile_) * ceil_div(columns_, column_tile_);
  return step_time(task_time(program), static_cast<double>(tasks), threads, output_bytes(program));
}

void ReducePlan::run(RunContext& context) const {
  allocate(context, value_);
  if (rows_ == 0 || columns_ == 0) return;
  const int64_t across = ceil_div(columns_, column_tile_);
  const int64_t tiles = ceil_div(rows_, row_tile_) * across;
  TileRunner runner(program, context, {&value_, 1});
  runner.run(tiles, saved, [&](TileContext& machine, int64_t tile) {
    const int64_t row = tile / across * row_tile_;
    const int64_t column = tile % across * column_tile_;
    if (scope_ != kNoScope) {
      machine.columns[static_cast<size_t>(scope_)] = {column,
                                                      std::min(column_tile_, columns_ - column)};
    }
    program.run(machine, row, std::min(row_tile_, rows_ - row));
  });
}

}  // namespace redfuser::cpu
