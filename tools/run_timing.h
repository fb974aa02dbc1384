// Timing a session: repeated runs, their parts, peak memory, and the times of the steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report_view.h"
#include "run_options.h"

namespace redfuser::tools {

struct Measurement {
  NamedTensors outputs;  // of the last run
  bool resident = false;
  // Of the timed runs, in milliseconds by run. `wall` is the host's time from the call until the
  // results are there; the others, of RunTiming, are empty unless a GPU ran them.
  std::vector<double> wall, enqueue, host_to_device, compute, device_to_host;
  std::optional<DeviceState> state;            // of the GPU, right after the timed runs
  int64_t peak_tensor_bytes = 0;               // largest of all runs
  int64_t peak_process_bytes = 0;              // resident memory of the process so far
  std::vector<std::vector<StepTime>> profile;  // by profiled run, one after the other
  std::vector<std::string> notes;
};

// Runs the session warmup + iterations times, and as often again, kMostProfiles times at most, for
// a profile on a GPU. Shows progress on a terminal if it takes long; `on_step`, unless it is empty,
// is called with the number of each step that begins.
inline constexpr int kMostProfiles = 20;
Measurement measure(Session& session, const NamedTensors& inputs, const RunOptions& options,
                    std::function<void(int)> on_step);

}  // namespace redfuser::tools
