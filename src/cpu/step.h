// CPU kernels: a step prepared once and run for any sizes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "fuse/plan.h"

namespace redfuser::cpu {

struct RunContext {
  const ir::Graph& graph;
  // By ValueId. A step finds its reads defined here (constants included) and defines its writes,
  // which it allocates.
  std::span<Tensor> values;
  // By symbol number (ExprNode::integer of a Symbol); -1 is unbound. Steps whose output sizes are
  // known at run time only bind them.
  std::vector<int64_t>& symbols;
  ThreadPool& pool;
};

// A kernel for people: "tile_program", "tiles of 16 rows by 512 columns".
struct KernelForm {
  std::string family, configuration;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(RunContext& context) const = 0;
  // As it has run for these sizes; `symbols` as RunContext::symbols.
  virtual KernelForm form(std::span<const int64_t> symbols) const = 0;
};

// The sizes of a value for the bound symbols.
Dims dims_of(const ir::Graph& graph, ir::ValueId value, std::span<const int64_t> symbols);

}  // namespace redfuser::cpu
