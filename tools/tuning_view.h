// What --tune found, as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "redfuser/redfuser.h"
#include "report_view.h"

namespace redfuser::tools {

// One line per finding, without its end: the first step that it holds for and how many others,
// times, and the choice.
std::vector<std::string> tuning_lines(const std::vector<StepTuning>& tunings);

// One entry per step.
Json tuning_json(const std::vector<StepTuning>& tunings);

}  // namespace redfuser::tools
