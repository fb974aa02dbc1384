#include "cpu/steps/map/map_families.h"

#include <algorithm>

#include "cpu/steps/map/map_stages.h"
#include "cpu/steps/map/operator_plan.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr const char* kMap = "map";
constexpr const char* kSections = "sections";
constexpr const char* kBoxes = "boxes";  // sections along several axes
constexpr const char* kStages = "stages";
constexpr const char* kOperator = "operator";
constexpr int kMostDivisions = 3;
// Estimates of several programs are less certain than that of one.
constexpr double kDoubt = 1.1;

const fuse::MapStep& step_of(const StepForm& form) { return std::get<fuse::MapStep>(form.kind); }

// Families of StepForm::made.
constexpr const char* kPrograms[kMostJoined + 1][2] = {{kMap, "map, outer"},
                                                       {"map, 1 joined", "map, 1 joined, outer"},
                                                       {"map, 2 joined", "map, 2 joined, outer"},
                                                       {"map, 3 joined", "map, 3 joined, outer"}};
constexpr const char *kJoined = "joined", *kOuter = "outer";

const char* program_name(SplitForm split) { return kPrograms[split.joined][split.outer]; }

std::shared_ptr<MapPlan> program(StepForm& form, SplitForm split) {
  return std::make_shared<MapPlan>(form, nullptr, split);
}

void add_tiles(StepForm& form, SplitForm split, std::vector<select::Candidate>& candidates) {
  const auto plan =
      form.program_of<MapPlan>(program_name(split), [&] { return program(form, split); });
  for (const auto& [rows, columns] : plan->tiles()) {
    plan->set_tile({rows, columns});
    select::Parameters parameters{{"rows", static_cast<int>(rows)},
                                  {"columns", static_cast<int>(columns)}};
    if (split.joined > 0) parameters.emplace_back(kJoined, split.joined);
    if (split.outer) parameters.emplace_back(kOuter, 1);
    candidates.push_back({{kMap, std::move(parameters)}, plan->time(form.threads).time});
  }
}

void add_sections(const StepForm& form, std::vector<select::Candidate>& candidates) {
  for (const bool boxes : {false, true}) {
    const std::vector<MapSection> sections = map_sections(step_of(form), form.symbols, boxes);
    if (sections.empty()) return;
    const select::Parameters parameters{
        {boxes ? kBoxes : kSections, static_cast<int>(sections.size())}};
    candidates.push_back({{kMap, parameters}, SectionedMapPlan(form, sections).time(form.threads)});
  }
}

void add_stages(const StepForm& form, std::vector<select::Candidate>& candidates) {
  size_t before = 1;
  for (int divisions = 1; divisions <= kMostDivisions; ++divisions) {
    const auto stages = map_stages(form, divisions);
    if (stages->steps.size() == before) return;
    before = stages->steps.size();
    const StagedMapPlan plan(form, *stages);
    if (plan.inner_bytes() > form.room) return;
    candidates.push_back({{kMap, {{kStages, divisions}}}, kDoubt * plan.time(form.threads)});
  }
}

select::FamilyAnswer offer(StepForm& form) {
  const auto& outputs = step_of(form).outputs;
  if (form.growing != nullptr &&
      std::any_of(outputs.begin(), outputs.end(),
                  [&](const auto& output) { return form.growing->folds_growing(output.body); })) {
    return {{}, "a sum of an element is over positions that grow"};
  }
  std::vector<select::Candidate> candidates;
  add_tiles(form, {}, candidates);
  const auto plan = form.program_of<MapPlan>(kMap, [&] { return program(form, {}); });
  for (const SplitForm& split : plan->others()) add_tiles(form, split, candidates);
  if (form.growing == nullptr) {
    add_sections(form, candidates);
    // Stages have inner values of their own in the place of those of the form.
    if (form.inner.empty()) add_stages(form, candidates);
  }
  if (const auto time = operator_time(form)) {
    candidates.push_back({{kMap, {{kOperator, 1}}}, *time});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

std::shared_ptr<const StepPlan> emit(StepForm& form, const select::KernelConfig& choice) {
  const std::string& first = choice.parameters.front().first;
  if (first == kSections || first == kBoxes) {
    return std::make_shared<SectionedMapPlan>(
        form, map_sections(step_of(form), form.symbols, first == kBoxes));
  }
  if (first == kOperator) return make_operator_plan(form);
  if (first == kStages) {
    const auto stages = map_stages(form, choice.parameters.front().second);
    return std::make_shared<StagedMapPlan>(form, *stages);
  }
  SplitForm split;
  for (const auto& [name, value] : choice.parameters) {
    if (name == kJoined) split.joined = value;
    if (name == kOuter) split.outer = value != 0;
  }
  auto plan = form.take<MapPlan>(program_name(split), [&] { return program(form, split); });
  plan->set_tile({choice.at("rows"), choice.at("columns")});
  plan->saved = plan->time(form.threads).saved;
  return plan;
}

constexpr Family kFamilies[] = {{kMap, offer, emit}};

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
