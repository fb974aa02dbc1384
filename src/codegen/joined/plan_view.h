// The steps of a plan with what they touch, for those who look for steps that may be one.
#pragma once

#include <set>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

using Values = std::set<ir::ValueId>;

// Whether the sets have a common value.
bool overlap(const Values& a, const Values& b);

// Owners of memory that steps read and write; constants are none.
struct Touched {
  Values reads, writes;

  void add(const Touched& other);
};

// Whether two steps may not change places: one writes what the other one touches.
bool depend(const Touched& a, const Touched& b);

// Whether two values have one type and the same sizes: always, or for some symbols.
bool are_alike(const ir::Value& a, const ir::Value& b);
bool may_be_alike(const ir::Value& a, const ir::Value& b);

struct PlanView {
  // All must outlive this.
  PlanView(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
           const std::set<size_t>& on_host);

  bool is_alias(size_t step) const {
    return std::holds_alternative<fuse::AliasStep>(plan.steps[step].kind);
  }
  bool is_free(size_t step) const {
    return on_host.count(step) == 0 && plan.steps[step].binds.empty();
  }
  // The inputs among `reads` whose memory a run may give to this one of the written values.
  template <typename Alike>
  Values overwritten(ir::ValueId written, const Values& reads, const Alike& alike) const {
    Values result;
    if (outputs.count(written) == 0) return result;
    for (const ir::ValueId read : reads) {
      if (inputs.count(read) > 0 && alike(value(written), value(read))) result.insert(read);
    }
    return result;
  }
  // Whether steps that touch `group`, computed with this step or after it, might read or leave
  // other values. They may read a state only before this one writes it: the runtime overwrites
  // nothing that a step still reads (may_write_in_place).
  bool conflicts(const Touched& group, size_t step) const;

  const ir::Value& value(ir::ValueId id) const { return graph.values[static_cast<size_t>(id)]; }

  const ir::Graph& graph;
  const fuse::Plan& plan;
  const Target& target;
  const std::set<size_t>& on_host;
  Values inputs, outputs;        // of the graph; owners of the outputs' memory
  std::vector<Touched> touched;  // by step
};

}  // namespace redfuser::codegen
