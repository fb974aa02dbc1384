// Growing one region from a reduction: over the nodes that read it, then over those that it reads.
// Internal to src/fuse.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuse/cascade_candidate.h"
#include "fuse/node_facts.h"
#include "fuse/region_replay.h"

namespace redfuser::fuse {

// Nodes of a region, those that it computes again, and their cascade.
struct RegionDraft {
  std::set<ir::NodeId> owned, shared;
  CascadeCandidate shape;
};

class RegionGrower {
 public:
  // Leaves out what other regions took, and the nodes in `banned`. `facts` and `taken` outlive it.
  RegionGrower(const NodeFacts& facts, const Claimed& taken, std::set<ir::NodeId> banned)
      : facts_(facts), graph_(facts.graph()), taken_(taken), banned_(std::move(banned)) {}

  std::vector<std::pair<ir::NodeId, std::string>> refused;  // reductions that the algebra refused
  ir::NodeId last_reduction = -1;

  // The region of a reduction; nullopt where it has no cascade.
  std::optional<RegionDraft> grow(ir::NodeId seed);
  // From a contraction over producers only; nullopt unless an expanding contraction is among them.
  std::optional<RegionDraft> grow_back(ir::NodeId seed);
  // What `grow` has looked at so far.
  RegionTrace growth(const RegionDraft& draft, ir::NodeId seed,
                     const std::string& fingerprint) const;
  // The region of a growth that was moved here; nullopt if it would be another one.
  std::optional<RegionDraft> repeat(const RegionTrace& moved);

 private:
  enum class Absorption { None, Owned, Shared };

  bool is_free(ir::NodeId node) const;
  // The same of a node of the graph; the growth depends on the answer.
  bool consult(ir::NodeId node) const;
  // Forms the cascade of the draft's nodes; false if there is none, or a value that the region
  // reads depends on what it computes.
  bool form(RegionDraft& draft) const;

  // region_grower.cpp: readers.
  // Consumers in topological order, so that a node is tried once all its inputs have been. A view
  // that cannot be an output (rows flattened together) may still lead to a node that can; a
  // reduction is tried again once the region has grown, as what it shares with another is then no
  // output.
  void forward(RegionDraft& draft);
  // Takes in up to `count` nodes of the frontier and behind it that reduce nothing, in the order in
  // which `forward` would, as one: a trial costs as much as the region is large. False, with
  // nothing changed, if there are no two of them or the region would not take them all.
  bool add_run(RegionDraft& draft, std::set<ir::NodeId>& frontier, size_t count);
  void own_with_passed(RegionDraft& draft, ir::NodeId first,
                       const std::set<ir::NodeId>& passed) const;
  bool add(RegionDraft& draft, ir::NodeId node, const std::set<ir::NodeId>& passed);
  // Producers that are not in the region yet can make two accumulators one, so they are counted
  // with those where the first count is too high.
  bool worth_one_pass(const RegionDraft& draft, const RegionDraft& next);
  // Worth reporting: a reduction that stays outside, or the contraction that a softmax leads to. A
  // product that merely follows a norm is no cascade left unfused.
  bool worth_reporting(const RegionDraft& draft, ir::NodeId node) const;
  // Contracting the streamed axis in the region pays where it saves an intermediate of rows times
  // axis: where that intermediate is a rescaled softmax or starts from a contraction.
  bool worth_contracting(const RegionDraft& draft);
  // The size of the node's result over that of what it is computed from.
  double expansion(ir::NodeId node) const;

  // region_producers.cpp: producers.
  // A path that leaves the region and comes back would make a cycle of steps: no value that the
  // region reads may depend on what it computes.
  bool reenters(const RegionDraft& draft) const;
  // Producers, last first, so that all consumers of a node have been decided before it.
  void backward(RegionDraft& draft);
  // The same for up to `count` producers that reduce nothing, as one. False, with nothing changed,
  // if there are no two of them or the region would not take them all.
  bool absorb_run(RegionDraft& draft, const std::set<ir::NodeId>& rejected, size_t count);
  // A cast to a narrower type goes with the step that computes what it reads, and takes along what
  // leads to it alone: that step stores less, and the region reads less.
  void release_casts(RegionDraft& draft) const;
  // The cast and the elementwise nodes of the region that only it needs; empty if one of them reads
  // what stays in the region or is a view, which is better read through than stored, or if none
  // reads what another step computes.
  std::set<ir::NodeId> leading_to(const RegionDraft& draft, ir::NodeId cast) const;
  // How the region may take in a producer: for itself, or computed again.
  Absorption absorption(const RegionDraft& draft, ir::NodeId node) const;
  bool absorb(RegionDraft& draft, ir::NodeId node);

  const NodeFacts& facts_;
  const ir::Graph& graph_;
  const Claimed& taken_;
  std::set<ir::NodeId> banned_;
  mutable std::map<ir::NodeId, bool> consulted_;
};

}  // namespace redfuser::fuse
