// What redfuser-run tells: as text for people, and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "redfuser/verify.h"
#include "report_view.h"
#include "run_options.h"
#include "run_timing.h"

namespace redfuser::tools {

struct RunResult {
  std::string device = "cpu";  // that it ran on
  std::string target;          // Program::dump's for that GPU; empty: none
  NamedTensors inputs;
  Measurement measurement;
  std::vector<StepTuning> tunings;
  std::vector<StepFacts> steps;  // for --explain and --report
  std::vector<Comparison> comparisons;
  std::optional<Verification> verification;

  bool passed() const;
};

std::string text_report(const Model& model, const ReportView& report, const RunOptions& options,
                        const RunResult& result);
std::string json_report(const Model& model, const ReportView& report, const RunOptions& options,
                        const RunResult& result);

}  // namespace redfuser::tools
