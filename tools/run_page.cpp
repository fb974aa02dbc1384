#include "run_page.h"

#include <fmt/format.h>

#include "time_view.h"

namespace redfuser::tools {
namespace {

void add_times(const Measurement& m, ReportOptions& page) {
  const auto add = [&](const char* name, const std::vector<double>& milliseconds) {
    if (milliseconds.empty()) return;
    page.facts.emplace_back(name, fmt::format("{:.3f} ms", spread_of(milliseconds).median));
  };
  add("wall", m.wall);
  add("compute", m.compute);
  if (m.state) page.facts.emplace_back("clocks", clocks_line(*m.state));
}

// A choice is a family and its configuration: "attention_split warps=4 keys=32".
StepCandidate candidate_of(const std::string& choice, double us) {
  StepCandidate candidate;
  const size_t space = choice.find(' ');
  candidate.family = choice.substr(0, space);
  if (space != std::string::npos) candidate.configuration = choice.substr(space + 1);
  candidate.measured_us = us;
  return candidate;
}

void add_tunings(const Program& program, const std::vector<StepTuning>& tunings,
                 std::vector<StepFacts>& steps) {
  for (const StepTuning& tuning : tunings) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (program.steps()[i].label != tuning.label) continue;
      const StepCandidate chosen = candidate_of(tuning.choice, tuning.us);
      steps[i].family = chosen.family;
      steps[i].configuration = chosen.configuration;
      steps[i].candidates.clear();
      for (const auto& [choice, us] : tuning.measured) {
        steps[i].candidates.push_back(candidate_of(choice, us));
      }
    }
  }
}

}  // namespace

ReportOptions page_options(const Program& program, const ReportView& report,
                           const RunOptions& options, const RunResult& result) {
  ReportOptions page;
  page.title = options.model;
  page.target = options.target_given ? options.target : result.target;
  page.facts = graph_facts(report);
  page.facts.emplace_back("device", result.device);
  add_times(result.measurement, page);
  const std::vector<ProfiledStep> profiled = profiled_steps(result.measurement.profile);
  // A run that is evaluated node by node has no times of steps.
  if (profiled.size() != program.steps().size()) return page;
  page.steps.resize(profiled.size());
  for (size_t i = 0; i < profiled.size(); ++i) {
    page.steps[i].measured_us = profiled[i].us;
    page.steps[i].share = profiled[i].share;
    page.steps[i].bytes = profiled[i].bytes;
    for (const auto& [name, us] : profiled[i].kernels) page.steps[i].kernels.push_back(name);
  }
  add_tunings(program, result.tunings, page.steps);
  return page;
}

}  // namespace redfuser::tools
