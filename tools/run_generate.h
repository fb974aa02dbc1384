// redfuser-run --generate: tokens and their times.
#pragma once

#include "run_options.h"
#include "streams.h"

namespace redfuser::tools {

// Generates as the options say, prints the tokens and times, and writes --json.
void run_generation(const Model& model, const Program& program, const RunOptions& options,
                    const Words& words);

}  // namespace redfuser::tools
