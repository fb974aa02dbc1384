// What a kernel keeps of its node.
#pragma once

#include <memory>
#include <mutex>

namespace redfuser::cpu {

// Data that a kernel derives from its node in the first run and keeps for later runs.
struct Prepared {
  std::mutex mutex;
  std::shared_ptr<const void> value;
};

}  // namespace redfuser::cpu
