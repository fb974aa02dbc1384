// Program::explain: the report of a plan, and what computes its steps, as JSON text.
#include <cmath>

#include "base/error.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"
#include "runtime/report/facts_json.h"

namespace redfuser {
namespace runtime {
namespace {

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json to_json(const cascade::StageReport& stage) {
  return {{"reduce", stage.reduce}, {"form", stage.form}, {"F", stage.F},
          {"G", stage.G},           {"H", stage.H},       {"rho", stage.rho}};
}

Json to_json(const cascade::FusedReport& region) {
  Json stages = Json::array();
  for (const cascade::StageReport& stage : region.stages) stages.push_back(to_json(stage));
  return {{"id", region.id},
          {"class", region.region_class},
          {"nodes", region.nodes},
          {"stages", std::move(stages)},
          {"verified",
           {{"cases", region.cases},
            {"max_error", number(region.max_error)},
            {"hidden", region.hidden},
            {"visible", region.visible}}}};
}

Json to_json(const CompiledProgram& program, const std::vector<StepFacts>& facts) {
  Json steps = Json::array();
  for (size_t i = 0; i < facts.size(); ++i) {
    const fuse::Step* planned = i < program.plan.steps.size() ? &program.plan.steps[i] : nullptr;
    if (planned != nullptr && std::holds_alternative<fuse::AliasStep>(planned->kind)) continue;
    const auto* cascade =
        planned == nullptr ? nullptr : std::get_if<fuse::CascadeStep>(&planned->kind);
    Json step = {{"step", i},
                 {"name", program.steps[i].label},
                 {"kind", program.steps[i].kind},
                 {"region", cascade != nullptr ? Json(cascade->report) : Json()}};
    step.update(facts_json(facts[i]));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace
}  // namespace runtime

std::string Program::explain(const std::vector<StepFacts>& steps, const std::string& device) const {
  using runtime::Json;
  RF_CHECK(steps.empty() || steps.size() == impl_->steps.size(), "explain: {} facts of {} steps",
           steps.size(), impl_->steps.size());
  const cascade::Report& report = impl_->plan.report;
  Json fused = Json::array(), unfused = Json::array();
  for (const cascade::FusedReport& region : report.fused) {
    fused.push_back(runtime::to_json(region));
  }
  for (const cascade::UnfusedReport& region : report.unfused) {
    unfused.push_back(
        {{"nodes", region.nodes}, {"reason", region.reason}, {"blame", region.blame}});
  }
  Json root = {{"fused", std::move(fused)},
               {"unfused", std::move(unfused)},
               {"ops_before", Json(report.ops_before)},
               {"ops_after", Json(report.ops_after)}};
  if (!steps.empty()) {
    root["device"] = device;
    root["steps"] = runtime::to_json(*impl_, steps);
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redfuser
