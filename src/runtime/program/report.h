// The report of a plan as text.
#pragma once

#include <string>

#include "cascade/report.h"

namespace redfuser::runtime {

// The report as JSON text, indented.
std::string report_to_json(const cascade::Report& report);

}  // namespace redfuser::runtime
