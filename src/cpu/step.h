// CPU kernels: a step prepared once and run for any sizes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "fuse/plan.h"
#include "select/offer.h"

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
  // Bytes that values within a step may take; and those that they took in the last step run.
  int64_t room = INT64_MAX;
  int64_t inner_bytes = 0;
  bool tune = false;  // steps measure their best choices at sizes that are new to them
  // Values of the step at hand alone, defined, numbered on from those of `values`.
  std::span<Tensor> inner;
  // By ValueId, the memory that a value is written to, in any sizes, where it is defined. Empty: no
  // value has such memory.
  std::span<const Tensor> targets;

  Tensor& value(int64_t id) {
    const auto index = static_cast<size_t>(id);
    return index < values.size() ? values[index] : inner[index - values.size()];
  }
};

// Defines a value, unless it is an inner one: its target, if that has as many elements, or memory
// of its own.
Tensor& place(RunContext& context, ir::ValueId value, Dims dims);

// A step ready to run for fixed sizes.
class StepPlan {
 public:
  virtual ~StepPlan() = default;
  virtual void run(RunContext& context) const = 0;
  // Of the values within the step.
  virtual int64_t inner_bytes() const { return 0; }
  // Whether it computes no other elements than those of a run's sizes: in memory with room for
  // more, the others are arbitrary, and no positions to read at.
  virtual bool is_exact() const { return true; }
};

// What was compared for a step at some sizes, the taken offer first.
struct Selection {
  std::vector<select::Offer> offers;
  // Of RunContext::tune, in microseconds, the default's first; else empty.
  std::vector<std::pair<std::string, double>> measured;
  std::map<std::string, double> estimated;  // of the measured
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(RunContext& context) const = 0;
  // As it has run for these sizes, with or without RunContext::tune; without offers where it has
  // not. `symbols` as RunContext::symbols.
  virtual Selection selection(std::span<const int64_t> symbols, bool tune) const = 0;
  // Microseconds for these sizes, by the least estimate; 0 where there is none.
  virtual double estimate(std::span<const int64_t> symbols, int threads) const = 0;
};

// The sizes of a value for the bound symbols.
Dims dims_of(const ir::Graph& graph, ir::ValueId value, std::span<const int64_t> symbols);

}  // namespace redfuser::cpu
