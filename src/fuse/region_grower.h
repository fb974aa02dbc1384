// Grows one region from a reduction, first over readers, then over producers. Internal to src/fuse.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuse/cascade_candidate.h"
#include "fuse/node_facts.h"
#include "fuse/region_replay.h"

namespace redfuser::fuse {

// Nodes of a region, nodes that it recomputes, and their cascade.
struct RegionDraft {
  std::set<ir::NodeId> owned, shared;
  CascadeCandidate shape;
};

class RegionGrower {
 public:
  // Excludes the nodes of other regions and those in `banned`. `facts`, `memo` and `taken` must
  // outlive it.
  RegionGrower(const NodeFacts& facts, ops::LoweringMemo& memo, const Claimed& taken,
               std::set<ir::NodeId> banned)
      : facts_(facts),
        graph_(facts.graph()),
        memo_(memo),
        taken_(taken),
        banned_(std::move(banned)) {}

  std::vector<std::pair<ir::NodeId, std::string>> refused;  // reductions that the algebra refused
  ir::NodeId last_reduction = -1;

  // The region of a reduction; nullopt if there is none.
  std::optional<RegionDraft> grow(ir::NodeId seed);
  // A region from a contraction over producers only; nullopt unless an expanding contraction is
  // among them.
  std::optional<RegionDraft> grow_back(ir::NodeId seed);
  // A record of the nodes that `grow` has examined so far.
  RegionTrace growth(const RegionDraft& draft, ir::NodeId seed,
                     const std::string& fingerprint) const;
  // The region of a trace mapped to this place; nullopt if growing here would give another one.
  std::optional<RegionDraft> repeat(const RegionTrace& moved);

 private:
  // Written: owned, and others read its result, so the region stores it.
  enum class Absorption { None, Owned, Shared, Written };

  // Whether the draft has a contraction before `seed` whose inputs are much smaller than what the
  // seed reads from the draft.
  bool expands_before(const RegionDraft& draft, ir::NodeId seed) const;
  bool is_free(ir::NodeId node) const;
  // The same of a node of the graph; the growth depends on the answer.
  bool consult(ir::NodeId node) const;
  using Candidate = std::variant<CascadeCandidate, CandidateRefusal>;
  // The cascade of the draft's nodes, for a trial: with shared axes.
  const Candidate& candidate(const RegionDraft& draft) const;
  // Whether a node's output sizes follow from the contents of a value that the draft computes: a
  // step's sizes are known before it runs.
  bool sizes_itself(const RegionDraft& draft) const;
  // Gives the draft a cascade with axes of its own.
  void finish(RegionDraft& draft) const;
  // Forms the cascade of the draft's nodes; false if there is none, or if a value that the region
  // reads depends on the region.
  bool form(RegionDraft& draft) const;

  // region_grower.cpp: readers. Consumers in topological order, so that a node is tried once all
  // its inputs have been. A view that cannot be an output (rows flattened together) may still lead
  // to a node that can; a refused reduction is tried again once the region has grown, since a value
  // that it shares with another reduction may then no longer be an output.
  void forward(RegionDraft& draft);
  // Takes in up to `count` nodes without reductions from the frontier on, in the order of
  // `forward`, in one trial, since the cost of a trial grows with the region. False, with nothing
  // changed, if there are fewer than two or the region refuses one of them.
  bool add_run(RegionDraft& draft, std::set<ir::NodeId>& frontier, size_t count);
  void own_with_passed(RegionDraft& draft, ir::NodeId first,
                       const std::set<ir::NodeId>& passed) const;
  bool add(RegionDraft& draft, ir::NodeId node, const std::set<ir::NodeId>& passed);
  // Whether the new node contracts a value along which the region maps back and that it stores:
  // `worth_contracting` would refuse it, after a trial.
  bool stores_what_it_contracts(const RegionDraft& next, ir::NodeId node) const;
  // Producers that are not in the region yet can make two accumulators one, so they are counted
  // with those where the first count is too high.
  bool worth_one_pass(const RegionDraft& draft, const RegionDraft& next);
  // Reports refused reductions, and a contraction after a softmax; not a product after a norm.
  bool worth_reporting(const RegionDraft& draft, ir::NodeId node) const;
  // Contracting the streamed axis in the region pays if it avoids storing an intermediate of rows
  // times axis: a rescaled softmax, or one that starts from a contraction.
  bool worth_contracting(const RegionDraft& draft);
  // Elements of the node's inputs, and whether its result has more.
  double inputs_size(ir::NodeId node) const;
  bool expands(ir::NodeId node) const;

  // region_producers.cpp: producers. True if a value that the region reads depends on the region,
  // which would make a cycle of steps.
  bool reenters(const RegionDraft& draft) const;
  // The node and all producers that `backward` could take in, without a trial: a region grown back
  // from the node has no others.
  std::set<ir::NodeId> producers_within_reach(ir::NodeId seed) const;
  // Whether no region takes in the node as a producer, whatever else it has.
  bool stays_outside(ir::NodeId node) const;
  // Producers, last first, so that all consumers of a node have been decided before it.
  void backward(RegionDraft& draft);
  // The same for up to `count` producers without reductions, in one trial. False, with nothing
  // changed, if there are fewer than two or the region refuses one of them.
  bool absorb_run(RegionDraft& draft, const std::set<ir::NodeId>& rejected, size_t count);
  // Leaves a cast to a narrower type, with the nodes that only lead to it, to the step of its
  // operand: that step then stores less, and the region reads less.
  void release_casts(RegionDraft& draft) const;
  // The cast and the elementwise nodes of the region that only it needs; empty if one of them reads
  // a value that stays in the region, if one is a view (better read through than stored), or if
  // none reads another step's value.
  std::set<ir::NodeId> leading_to(const RegionDraft& draft, ir::NodeId cast) const;
  // Leaves what unpacks the region's 8-bit floats for products to these: the region then stores
  // the codes, and the products multiply them as they are.
  void release_unpacked(RegionDraft& draft) const;
  // Leaves results that are one value under other shapes to steps of their own, which cost nothing;
  // the region stores that value once.
  void release_aliases(RegionDraft& draft) const;
  bool reads_own_codes(const RegionDraft& draft, ir::NodeId node) const;
  // The node and those behind it up to products; empty if one of them is computed for another end,
  // is an output, or is a product of the region.
  std::set<ir::NodeId> between_products(const RegionDraft& draft, ir::NodeId first) const;
  // Whether the region may take in a producer, as its own or to recompute it.
  Absorption absorption(const RegionDraft& draft, ir::NodeId node) const;
  // Whether others than the region may have the node's result from it: an elementwise node that no
  // product's epilogue can compute.
  bool may_write(ir::NodeId node) const;
  bool absorb(RegionDraft& draft, ir::NodeId node);

  const NodeFacts& facts_;
  const ir::Graph& graph_;
  ops::LoweringMemo& memo_;
  const Claimed& taken_;
  std::set<ir::NodeId> banned_;
  mutable std::map<ir::NodeId, bool> consulted_;
  // By owned and shared nodes: a trial that `worth_one_pass` or `worth_contracting` makes is made
  // again if the answer is yes.
  mutable std::map<std::pair<std::set<ir::NodeId>, std::set<ir::NodeId>>, Candidate> tried_;
};

}  // namespace redfuser::fuse
