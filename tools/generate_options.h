// The options of redfuser-run that generate tokens.
#pragma once

#include <string>
#include <vector>

#include "redfuser/generate.h"

namespace CLI {
class App;
}

namespace redfuser::tools {

struct GenerationOptions {
  bool wanted = false;  // --generate was given
  std::string prompt;
  std::vector<std::string> states;  // PRESENT=PAST or PRESENT=PAST:AXIS
  GenerateOptions generate;         // but for the seed
};

void add_generate_options(CLI::App& app, GenerationOptions& options);
// After parsing. UserError for options that do not go together.
void check_generate_options(const CLI::App& app, GenerationOptions& options);

// The pairs of --state. A past that has its colon from the model is taken as a whole.
std::vector<StatePair> state_pairs(const std::vector<std::string>& states, const Model& model);

}  // namespace redfuser::tools
