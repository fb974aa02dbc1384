// Checks of sizes that are known at run time only.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace redfuser::runtime {

// The checks of one run, each made once as soon as its sizes are bound.
class SizeChecks {
 public:
  explicit SizeChecks(const ir::Graph& graph);

  // Makes the checks whose symbols are all bound. Throws UserError naming the node and both sizes.
  void run(std::span<const int64_t> symbols);

 private:
  struct Pending {
    const ir::SizeCheck* check;
    std::vector<int64_t> symbols;  // of its two sizes
  };
  std::vector<Pending> pending_;
};

}  // namespace redfuser::runtime
