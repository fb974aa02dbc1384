// Times of steps for a viewer.
//
//   session.profile(true);
//   session.run(inputs);
//   std::string text = redfuser::chrome_trace({session.step_times()}, "my program");
#pragma once

#include <string>
#include <vector>

#include "redfuser/timing.h"

namespace redfuser {

// Runs as JSON that chrome://tracing and ui.perfetto.dev open. Times of all runs have one origin;
// `process` names the program.
std::string chrome_trace(const std::vector<std::vector<StepTime>>& runs,
                         const std::string& process);

// The steps of a run that began `begin_us` after the origin.
std::vector<StepTime> since_origin(std::vector<StepTime> steps, double begin_us);

}  // namespace redfuser
