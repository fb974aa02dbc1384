// Made-up inputs for a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "redfuser/redfuser.h"

namespace redfuser {

struct RandomOptions {
  uint64_t seed = 0;
  std::map<std::string, int64_t> symbols;  // sizes of symbolic dimensions; 1 where not given
  std::map<std::string, Dims> shapes;      // whole shapes by input; bind their symbols
  std::map<std::string, std::pair<double, double>> ranges;  // [low, high) by input
};

// One tensor per input of the model. Floats are N(0, 1), integers uniform in [0, 2), bools fair;
// an input with a range is uniform in it. The same seed, name and shape give the same tensor.
// Throws UserError for a name that the model does not have, and for a shape or size
// that contradicts another.
NamedTensors random_inputs(const Model& model, const RandomOptions& options = {});

}  // namespace redfuser
