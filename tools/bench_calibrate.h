// redfuser-bench --calibrate: the numbers of a GPU beside those of the table of machines.
#pragma once

#include <string>

namespace redfuser::tools {

// Prints them; also as JSON to a file ("-" for stdout, empty for none). The exit code.
int run_calibration(const std::string& json);

}  // namespace redfuser::tools
