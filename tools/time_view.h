// What was measured, as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "report_view.h"
#include "run_timing.h"

namespace redfuser::tools {

// Of samples; percentiles by linear interpolation between the two nearest ranks, as
// numpy.percentile. At least one sample.
struct Spread {
  double min = 0, mean = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Spread spread_of(std::vector<double> samples);

// One step over all profiled runs.
struct ProfiledStep {
  std::string label, kind;
  int64_t bytes = 0;         // 0: not known
  double us = 0, share = 0;  // the median, and its part of the sum of all steps'
  std::vector<std::pair<std::string, double>> kernels;  // with their medians
  double gigabytes_per_second() const { return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0; }
};
// In the order in which they run.
std::vector<ProfiledStep> profiled_steps(const std::vector<std::vector<StepTime>>& profile);

// Their times, as those measured of the steps; nothing unless the steps are the same.
void add_profile(const std::vector<ProfiledStep>& profile, std::vector<StepFacts>& steps);

// What begins a line of a report: the name, or spaces for "".
std::string heading(const char* name);
// The lines behind a heading: the name before the first one, spaces before the others.
std::string indented(const char* name, const std::vector<std::string>& lines);

// Lines without their ends. A table of the parts of the runs; without `timed`, one line of the
// first one.
std::vector<std::string> time_lines(const Measurement& measurement, bool timed);
std::string clocks_line(const DeviceState& state);
// The steps that take most; those of the same kernels are one line.
std::vector<std::string> profile_lines(const std::vector<std::vector<StepTime>>& profile);

Json time_json(const Measurement& measurement);
Json to_json(const DeviceState& state);
Json profile_json(const std::vector<std::vector<StepTime>>& profile);

}  // namespace redfuser::tools
