// Timing a session: repeated runs, percentiles, peak memory, and a trace of the steps.
#pragma once

#include <string>
#include <vector>

#include "report_view.h"
#include "run_options.h"

namespace redfuser::tools {

struct Measurement {
  NamedTensors outputs;              // of the last run
  std::vector<double> milliseconds;  // one per timed run
  int64_t peak_tensor_bytes = 0;     // largest of all runs
  int64_t peak_process_bytes = 0;    // resident memory of the process so far
  std::vector<StepTime> trace;       // of all timed runs, one after the other
  double percentile(double fraction) const;
  double mean() const;
};

// Runs the session warmup + iterations times. Shows progress on a terminal if it takes long.
Measurement measure(Session& session, const NamedTensors& inputs, const RunOptions& options);

// The trace as JSON that chrome://tracing and ui.perfetto.dev open.
std::string chrome_trace(const std::vector<StepTime>& trace);

}  // namespace redfuser::tools
