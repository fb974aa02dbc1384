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

}  // namespace

ReportOptions page_options(const Program& program, const ReportView& report,
                           const RunOptions& options, const RunResult& result) {
  ReportOptions page;
  page.title = options.model;
  page.target = options.target_given ? options.target : result.target;
  page.facts = graph_facts(report);
  page.facts.emplace_back("device", result.device);
  add_times(result.measurement, page);
  page.steps = result.steps;
  if (!options.target_given) return page;
  page.steps = program.step_facts(options.target);
  add_profile(profiled_steps(result.measurement.profile), page.steps);
  return page;
}

}  // namespace redfuser::tools
