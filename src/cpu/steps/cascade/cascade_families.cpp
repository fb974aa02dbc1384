#include "cpu/steps/cascade/cascade_families.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpu/steps/cascade/cascade_plan.h"
#include "cpu/steps/cascade/cascade_roles.h"
#include "cpu/steps/cascade/parts_plan.h"
#include "cpu/steps/ranking.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/specialize.h"
#include "ir/evaluate.h"

namespace redfuser::cpu {
namespace {

constexpr const char *kWholeRows = "whole_rows", *kByParts = "whole_rows_by_parts",
                     *kStreamed = "streamed", *kParts = "parts";
constexpr const char *kLength = "length", *kStored = "stored";
// A register of a whole row, and the elements of a tile.
constexpr int64_t kLongestRow = 1 << 16, kTileElements = 1 << 17;
constexpr int64_t kMaxRows = 512;
// Elements of the streamed axis at a time.
constexpr int64_t kColumnTiles[] = {128, 512, 2048, 4096};

const cascade::Streaming& streaming_of(const StepForm& form) {
  return std::get<fuse::CascadeStep>(form.kind).streaming;
}

int64_t length_of(const StepForm& form) {
  return evaluate_size(streaming_of(form).cascade.stream->extent(), form.symbols);
}

std::shared_ptr<CascadePlan> program(StepForm& form, CascadeRows kind) {
  return std::make_shared<CascadePlan>(form, streaming_of(form), kind);
}

// Why a plan for growing sizes would need to know the length; empty if it need not.
std::string refusal_of(const StepForm& form) {
  if (form.growing == nullptr) return "";
  const cascade::Streaming& s = streaming_of(form);
  const bool grows = form.growing->grows(s.cascade.stream->extent());
  bool counts = false, folds = false;
  const auto scan = [&](ir::Expr root) {
    folds = folds || form.growing->folds_growing(root);
    visit(root, [&](ir::Expr e) {
      counts =
          counts || (grows && e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count);
    });
  };
  for (const cascade::Accumulator& fold : s.accumulators) {
    if (grows && picks_element(fold.reduction)) return "the best elements of a row that grows";
    scan(fold.lift);
    if (fold.transport != nullptr) scan(fold.transport);
  }
  for (const cascade::Reference& reference : s.references) scan(reference.value);
  for (ir::Expr finish : s.finish) scan(finish);
  for (const cascade::CascadeOutput& output : s.cascade.outputs) scan(output.body);
  if (folds) return "a sum of an element is over positions that grow";
  return counts ? "the elements of a row that grows are counted" : "";
}

// Every choice of rows, with the time of the program with these tiles.
void offer_rows(StepForm& form, CascadePlan& plan, std::string_view family, int64_t columns,
                std::vector<select::Candidate>& candidates) {
  const int64_t most =
      std::clamp<int64_t>(kTileElements / std::max<int64_t>(columns, 1), 1, kMaxRows);
  for (const bool merges : ranking_choices(plan.program)) {
    set_merges(plan.program, merges);
    for (const int64_t rows : row_tiles(plan.rows(), most)) {
      plan.set_tiles(rows, columns);
      const StepTime time = plan.time(form.threads);
      form.floor = form.floor > 0 ? std::min(form.floor, time.floor) : time.floor;
      select::Parameters parameters = {{"rows", static_cast<int>(rows)}};
      if (family == kStreamed) parameters.emplace_back("columns", static_cast<int>(columns));
      if (ranks(plan.program)) parameters.emplace_back("merges", merges);
      candidates.push_back({{std::string(family), std::move(parameters)}, time.time});
    }
  }
}

select::FamilyAnswer sorted(std::vector<select::Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

// Whether an output's elements are at positions that the streamed axis has by parts.
bool has_parts(const StepForm& form) {
  const cascade::Streaming& s = streaming_of(form);
  bool found = false;
  for (const cascade::CascadeOutput& output : s.cascade.outputs) {
    if (!output.maps_back) continue;
    visit(output.body, [&](ir::Expr e) {
      found |= (e->op == ir::ExprOp::FloorDiv || e->op == ir::ExprOp::FloorMod) &&
               e->depends_on(s.cascade.stream);
    });
  }
  return found;
}

select::FamilyAnswer offer_whole(StepForm& form, const char* family, CascadeRows kind) {
  if (std::string refusal = refusal_of(form); !refusal.empty()) return {{}, std::move(refusal)};
  const int64_t length = length_of(form);
  if (length > kLongestRow) {
    return {{}, fmt::format("rows of {} elements do not stay in a cache", length)};
  }
  const auto plan = form.program_of<CascadePlan>(family, [&] { return program(form, kind); });
  std::vector<select::Candidate> candidates;
  if (plan->empty()) return {{{{family, {{"rows", 1}}}, 0}}, ""};
  offer_rows(form, *plan, family, length, candidates);
  return sorted(std::move(candidates));
}

std::shared_ptr<const StepPlan> emit_whole(StepForm& form, const select::KernelConfig& choice,
                                           const char* family, CascadeRows kind) {
  auto plan = form.take<CascadePlan>(family, [&] { return program(form, kind); });
  set_merges(plan->program, choice);
  plan->set_tiles(choice.at("rows"), 0);
  plan->saved = plan->time(form.threads).saved;
  return plan;
}

select::FamilyAnswer offer_whole_rows(StepForm& form) {
  return offer_whole(form, kWholeRows, CascadeRows::Whole);
}
std::shared_ptr<const StepPlan> emit_whole_rows(StepForm& form,
                                                const select::KernelConfig& choice) {
  return emit_whole(form, choice, kWholeRows, CascadeRows::Whole);
}

select::FamilyAnswer offer_by_parts(StepForm& form) {
  if (form.growing != nullptr) return {{}, "parts of a row are of fixed sizes"};
  if (!has_parts(form)) return {{}, "no output has parts of the streamed axis"};
  return offer_whole(form, kByParts, CascadeRows::WholeByParts);
}
std::shared_ptr<const StepPlan> emit_by_parts(StepForm& form, const select::KernelConfig& choice) {
  return emit_whole(form, choice, kByParts, CascadeRows::WholeByParts);
}

select::FamilyAnswer offer_streamed(StepForm& form) {
  if (std::string refusal = refusal_of(form); !refusal.empty()) return {{}, std::move(refusal)};
  const int64_t length = length_of(form);
  if (length <= kColumnTiles[0]) return {{}, "a tile holds whole rows"};
  const auto plan =
      form.program_of<CascadePlan>(kStreamed, [&] { return program(form, CascadeRows::Streamed); });
  if (plan->empty()) return {{}, "there is nothing to compute"};
  std::vector<select::Candidate> candidates;
  for (const int64_t columns : kColumnTiles) {
    if (columns < length) offer_rows(form, *plan, kStreamed, columns, candidates);
  }
  // Merged lists want tiles that are as long.
  const int64_t kept = longest_list(plan->program);
  if (kept > kColumnTiles[3] && kept < length) {
    offer_rows(form, *plan, kStreamed, kept, candidates);
  }
  return sorted(std::move(candidates));
}

std::shared_ptr<const StepPlan> emit_streamed(StepForm& form, const select::KernelConfig& choice) {
  auto plan =
      form.take<CascadePlan>(kStreamed, [&] { return program(form, CascadeRows::Streamed); });
  set_merges(plan->program, choice);
  plan->set_tiles(choice.at("rows"), choice.at("columns"));
  plan->saved = plan->time(form.threads).saved;
  return plan;
}

// Those of one program.
constexpr Family kPrograms[] = {
    {kWholeRows, offer_whole_rows, emit_whole_rows},
    {kByParts, offer_by_parts, emit_by_parts},
    {kStreamed, offer_streamed, emit_streamed},
};

select::FamilyAnswer offer_parts(StepForm& form) {
  // Estimates of several programs are less certain than that of one.
  constexpr double kDoubt = 1.1;
  const auto forms = part_forms(form);
  if (const auto* refusal = std::get_if<std::string>(&forms)) return {{}, *refusal};
  std::vector<select::Candidate> candidates;
  for (const PartsForm& of : std::get<std::vector<PartsForm>>(forms)) {
    const auto parts = cascade_parts(form, of);
    if (parts == nullptr) return {{}, "an output has the elements in another order"};
    const PartsPlan plan(form, parts, kPrograms);
    if (plan.inner_bytes() > form.room || !std::isfinite(plan.time())) continue;
    select::Parameters parameters = {{kLength, static_cast<int>(of.length)},
                                     {kStored, of.stored ? 1 : 0}};
    candidates.push_back({{kParts, std::move(parameters)}, kDoubt * plan.time()});
  }
  if (candidates.empty()) return {{}, "no family computes the parts in the memory that is left"};
  return sorted(std::move(candidates));
}

std::shared_ptr<const StepPlan> emit_parts(StepForm& form, const select::KernelConfig& choice) {
  const PartsForm of{choice.at(kLength), choice.at(kStored) != 0};
  return std::make_shared<PartsPlan>(form, cascade_parts(form, of), kPrograms);
}

constexpr Family kFamilies[] = {
    kPrograms[0], kPrograms[1], kPrograms[2], {kParts, offer_parts, emit_parts}};

}  // namespace

std::span<const Family> cascade_families() { return kFamilies; }

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::CascadeStep& step) {
  const cascade::Streaming& s = step.streaming;
  std::vector<ir::Expr> all = s.cascade.rows;
  std::vector<ir::ValueId> values;
  all.push_back(s.cascade.stream);
  for (const cascade::Accumulator& a : s.accumulators) {
    all.insert(all.end(), {a.lift, a.transport});
    all.insert(all.end(), a.columns.begin(), a.columns.end());
  }
  for (const cascade::Reference& r : s.references) all.push_back(r.value);
  all.insert(all.end(), s.finish.begin(), s.finish.end());
  for (const cascade::CascadeOutput& output : s.cascade.outputs) {
    values.push_back(output.value);
    all.push_back(output.body);
    all.insert(all.end(), output.axes.begin(), output.axes.end());
  }
  return symbols_of(graph, all, values);
}

}  // namespace redfuser::cpu
