// The sizes of states that follow from the other inputs of a run.
#pragma once

#include <map>

#include "runtime/state/state_value.h"

namespace redfuser::runtime {

// Symbolic sizes by name, as the dimensions of a run's inputs have them.
class StateSizes {
 public:
  // Inputs that the model does not have are left to the session's check.
  StateSizes(const Model& model, const NamedDims& inputs);

  // Of the state before the first run: 0 along its axis; the capacity, where a state without an
  // axis leaves a size open. UserError, with the state's name, for a size that nothing gives.
  Dims empty_dims(const StateValue& state) const;
  // UserError, with the state's name, for an input of another size, such as of another batch.
  void check(const StateValue& state) const;

 private:
  struct Size {
    int64_t size = 0;
    std::string input;
    size_t axis = 0;
  };
  std::map<std::string, Size> sizes_;
};

}  // namespace redfuser::runtime
