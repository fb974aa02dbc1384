// What a MemoryLimit hands to the tensors that are made under it.
#pragma once

#include <cstddef>
#include <memory>

#include "redfuser/error.h"

namespace redfuser {

// A tensor that does not fit. Whoever knows which node makes it says so.
class MemoryLimitError : public UserError {
 public:
  using UserError::UserError;
};

struct MemoryBudget;

// The budget of the calling thread; null without a limit.
std::shared_ptr<MemoryBudget> current_budget();

// Counts bytes as alive, from any thread. `take` throws MemoryLimitError if they do
// not fit.
void take(MemoryBudget& budget, size_t bytes);
void give_back(MemoryBudget& budget, size_t bytes);

}  // namespace redfuser
