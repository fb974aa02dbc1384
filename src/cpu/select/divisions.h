// Regions divided into steps of their own: the family `unfused` of cascades.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpu/select/region_graph.h"
#include "cpu/steps/step_form.h"
#include "fuse/alternatives.h"

namespace redfuser::cpu {

inline constexpr const char* kDivisionFamily = "unfused";

// The divisions of one region, made when they are first asked for. Thread-safe.
class Divisions {
 public:
  // `graph` and `step` must outlive this.
  Divisions(const ir::Graph& graph, const fuse::Step& step) : graph_(graph), step_(step) {}

  struct Division {
    std::string name;  // "unfused", or which products are steps of their own
    std::vector<fuse::Step> steps;
    std::vector<std::unique_ptr<Kernel>> kernels;  // by step; null for an alias
    std::vector<ir::ValueId> inner;                // values that it computes besides the outputs
  };
  // Numbers of nodes and values are those of region().
  const std::vector<Division>& all() const;
  // Requires a call of all() before.
  const RegionGraph& region() const { return region_; }

  // Microseconds by the least estimates of its steps, and its inner values' bytes.
  struct Cost {
    double time = 0;
    int64_t bytes = 0;
  };
  Cost cost(const Division& division, std::span<const int64_t> symbols, int threads) const;
  int64_t bytes(const Division& division, std::span<const int64_t> symbols) const;

 private:
  const ir::Graph& graph_;
  const fuse::Step& step_;
  mutable std::once_flag made_;
  mutable RegionGraph region_;
  mutable std::vector<Division> divisions_;
};

// Runs the steps of a division, which the plan keeps.
std::shared_ptr<const StepPlan> plan_of(std::shared_ptr<const Divisions> divisions, size_t number,
                                        int64_t inner_bytes);

}  // namespace redfuser::cpu
