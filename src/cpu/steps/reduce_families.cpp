#include "cpu/steps/reduce_families.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/steps/ranking.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr const char *kRows = "reduction_rows", *kColumns = "reduction_columns",
                     *kJoined = "reduction_joined", *kRunning = "running",
                     *kRunningRows = "running_rows";
constexpr int64_t kTileElements = 1 << 16, kMaxRows = 512;
constexpr int64_t kColumnTiles[] = {64, 256, 1024};
constexpr int64_t kRunColumnTiles[] = {16, 64, 256, 1024};  // beside the rows of a run
constexpr int64_t kRunElements = 1 << 20;                   // of the columns of a run
constexpr int64_t kListTile = 512;                          // elements that are looked at together

ReducePlan::MakeBody body_of(const StepForm& form) {
  return [&form](ir::ExprPool& pool) {
    const auto& step = std::get<fuse::ReduceStep>(form.kind);
    Specializer specializer(pool, form.symbols);
    std::vector<ir::Expr> indices;
    for (ir::Expr axis : step.axes) indices.push_back(specializer.copy(axis));
    return ReducePlan::Body{step.value, std::move(indices), specializer.copy(step.body)};
  };
}

std::vector<int64_t> column_tiles(const ReducePlan& plan, ReduceColumnsKind kind) {
  const int64_t columns = std::max<int64_t>(plan.columns(), 1);
  const bool beside = kind == ReduceColumnsKind::BesideRunning;
  const bool output = kind == ReduceColumnsKind::Output || kind == ReduceColumnsKind::Joined;
  if (!output && !beside) return {columns};
  std::vector<int64_t> tiles;
  for (const int64_t tile : beside ? std::span<const int64_t>(kRunColumnTiles)
                                   : std::span<const int64_t>(kColumnTiles)) {
    if (beside && std::min(tile, columns) * plan.run_length() > kRunElements) continue;
    if (tiles.empty() || tile < 2 * columns) tiles.push_back(std::min(tile, columns));
  }
  return tiles;
}

}  // namespace

select::FamilyAnswer offer_reduction(StepForm& form, ReduceColumnsKind kind, std::string_view name,
                                     const ReducePlan::MakeBody& make) {
  if (form.growing != nullptr) return {{}, "a reduction is planned for fixed sizes"};
  std::string refusal;
  const auto plan = form.program_of<ReducePlan>(name, [&] {
    auto made = std::make_shared<ReducePlan>();
    refusal = made->build(form.graph, form.symbols, make, kind);
    return made;
  });
  if (!refusal.empty()) return {{}, std::move(refusal)};
  std::vector<select::Candidate> candidates;
  for (const bool merges : ranking_choices(plan->program)) {
    set_merges(plan->program, merges);
    set_list_tiles(plan->program, kListTile);
    for (const int64_t columns : column_tiles(*plan, kind)) {
      const int64_t wide = std::max(columns, plan->widest());
      const int64_t most = std::clamp<int64_t>(kTileElements / wide, 1, kMaxRows);
      for (const int64_t rows : row_tiles(std::max<int64_t>(plan->rows(), 1), most)) {
        plan->set_tiles(rows, columns);
        select::Parameters parameters = {{"rows", static_cast<int>(rows)},
                                         {"columns", static_cast<int>(columns)}};
        if (ranks(plan->program)) parameters.emplace_back("merges", merges);
        const StepTime time = plan->time(form.threads);
        form.floor = form.floor > 0 ? std::min(form.floor, time.floor) : time.floor;
        candidates.push_back({{std::string(name), std::move(parameters)}, time.time});
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

std::shared_ptr<const StepPlan> emit_reduction(StepForm& form, const select::KernelConfig& choice,
                                               ReduceColumnsKind kind, std::string_view name,
                                               const ReducePlan::MakeBody& make) {
  auto plan = form.take<ReducePlan>(name, [&] {
    auto made = std::make_shared<ReducePlan>();
    const std::string refusal = made->build(form.graph, form.symbols, make, kind);
    RF_CHECK(refusal.empty(), "{}: {}", name, refusal);
    return made;
  });
  set_merges(plan->program, choice);
  set_list_tiles(plan->program, kListTile);
  plan->set_tiles(choice.at("rows"), choice.at("columns"));
  plan->saved = plan->time(form.threads).saved;
  return plan;
}

namespace {

select::FamilyAnswer offer_rows(StepForm& form) {
  return offer_reduction(form, ReduceColumnsKind::Reduced, kRows, body_of(form));
}
std::shared_ptr<const StepPlan> emit_rows(StepForm& form, const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Reduced, kRows, body_of(form));
}

select::FamilyAnswer offer_columns(StepForm& form) {
  return offer_reduction(form, ReduceColumnsKind::Output, kColumns, body_of(form));
}
std::shared_ptr<const StepPlan> emit_columns(StepForm& form, const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Output, kColumns, body_of(form));
}

select::FamilyAnswer offer_joined(StepForm& form) {
  return offer_reduction(form, ReduceColumnsKind::Joined, kJoined, body_of(form));
}
std::shared_ptr<const StepPlan> emit_joined(StepForm& form, const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Joined, kJoined, body_of(form));
}

select::FamilyAnswer offer_running(StepForm& form) {
  return offer_reduction(form, ReduceColumnsKind::Running, kRunning, body_of(form));
}
std::shared_ptr<const StepPlan> emit_running(StepForm& form, const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Running, kRunning, body_of(form));
}

select::FamilyAnswer offer_running_rows(StepForm& form) {
  auto answer =
      offer_reduction(form, ReduceColumnsKind::BesideRunning, kRunningRows, body_of(form));
  if (answer.candidates.empty() && answer.refusal.empty()) {
    answer.refusal = "a tile has all rows of the running axis, which are too many";
  }
  return answer;
}
std::shared_ptr<const StepPlan> emit_running_rows(StepForm& form,
                                                  const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::BesideRunning, kRunningRows,
                        body_of(form));
}

constexpr Family kFamilies[] = {
    {kRows, offer_rows, emit_rows},
    {kColumns, offer_columns, emit_columns},
    {kJoined, offer_joined, emit_joined},
    {kRunning, offer_running, emit_running},
    {kRunningRows, offer_running_rows, emit_running_rows},
};

}  // namespace

std::span<const Family> reduce_families() { return kFamilies; }

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::ReduceStep& step) {
  std::vector<ir::Expr> expressions = step.axes;
  expressions.push_back(step.body);
  return symbols_of(graph, expressions, {&step.value, 1});
}

}  // namespace redfuser::cpu
