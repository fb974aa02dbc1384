#include "plan/regions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "plan/product_sums.h"
#include "plan/region_shape.h"
#include "plan/repeated_growth.h"
#include "plan/tile_reads.h"

namespace redfuser {
namespace {

// New accumulators for one stage cost less than a second pass over the row if they are no more
// than this, or than what the pass would read of every element.
constexpr size_t kMaxNewAccumulators = 2;
constexpr int kMaxAttempts = 4;
constexpr size_t kMaxRepeated = 4;  // kinds of places where one layer uses an operator
// A chain of products pays when its intermediate dwarfs its inputs; products by weights expand four
// times in the usual feed-forward layer and are faster as two.
constexpr double kMinChainExpansion = 4;

// Reads of every element of the streamed axis, by the last stage.
size_t streamed_reads(const CascadeCandidate& shape) {
  const Cascade& cascade = shape.extraction.cascade;
  size_t count = 0;
  visit(cascade.stages.back().body,
        [&](Expr e) { count += e->op == ExprOp::Read && e->depends_on(cascade.stream); });
  return count;
}

struct Draft {
  std::set<NodeId> owned, shared;
  CascadeCandidate shape;
};

class Grower {
 public:
  Grower(const GraphFacts& facts, const Taken& taken, std::set<NodeId> banned)
      : facts_(facts), graph_(facts.graph()), taken_(taken), banned_(std::move(banned)) {}

  std::vector<std::pair<NodeId, std::string>> refused;  // reductions that the algebra refused
  NodeId last_reduction = -1;

  // What `grow` has looked at so far.
  Growth growth(const Draft& draft, NodeId seed, const std::string& fingerprint) const {
    Growth growth{seed, last_reduction, draft.owned, draft.shared, refused, consulted_, {}, {}};
    growth.consulted.emplace(seed, true);
    for (const auto& [node, free] : growth.consulted) {
      for (const ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
        if (taken_.pinned.count(output)) growth.pinned.insert(output);
      }
    }
    growth.fingerprint = fingerprint;
    return growth;
  }

  // The region of a growth that was moved here; nullopt if it would be another one.
  std::optional<Draft> repeat(const Growth& moved) {
    Draft draft;
    draft.owned = moved.owned;
    draft.shared = moved.shared;
    auto shape = form_shape(facts_, draft.owned, draft.shared, taken_.pinned);
    if (!std::holds_alternative<CascadeCandidate>(shape)) return std::nullopt;
    draft.shape = std::get<CascadeCandidate>(std::move(shape));
    const std::string here = fingerprint(*graph_.pool, draft.shape.extraction.cascade);
    if (here != moved.fingerprint || reenters(draft)) return std::nullopt;
    return draft;
  }

  std::optional<Draft> grow(NodeId seed) {
    Draft draft;
    draft.owned = {seed};
    auto shape = form_shape(facts_, draft.owned, draft.shared, taken_.pinned);
    if (auto* failure = std::get_if<CandidateRefusal>(&shape)) {
      refused.emplace_back(seed, failure->reason);
      return std::nullopt;
    }
    draft.shape = std::get<CascadeCandidate>(std::move(shape));
    last_reduction = seed;
    forward(draft);
    backward(draft);
    release_casts(draft);
    return draft;
  }

  // From a contraction over producers only; nullopt unless an expanding contraction is among them.
  std::optional<Draft> grow_back(NodeId seed) {
    Draft draft;
    draft.owned = {seed};
    auto shape = form_shape(facts_, draft.owned, draft.shared, taken_.pinned);
    if (!std::holds_alternative<CascadeCandidate>(shape)) return std::nullopt;
    draft.shape = std::get<CascadeCandidate>(std::move(shape));
    backward(draft);
    const bool expanding = std::any_of(draft.owned.begin(), draft.owned.end(), [&](NodeId node) {
      return node != seed && facts_.contracts(node) && expansion(node) > kMinChainExpansion;
    });
    return expanding ? std::optional(std::move(draft)) : std::nullopt;
  }

 private:
  bool is_free(NodeId node) const {
    return node >= 0 && taken_.nodes.count(node) == 0 && banned_.count(node) == 0 &&
           facts_.lowered(node);
  }

  bool free_node(NodeId node) const {
    if (node < 0) return false;
    const bool free = is_free(node);
    consulted_.emplace(node, free);
    return free;
  }

  // Consumers in topological order, so that a node is tried once all its inputs have been. A view
  // that cannot be an output (rows flattened together) may still lead to a node that can; a
  // reduction is tried again once the region has grown, as what it shares with another is then no
  // output.
  void forward(Draft& draft) {
    std::set<NodeId> frontier, passed;
    std::map<NodeId, size_t> failed;  // with the number of nodes owned then
    auto push = [&](NodeId node) {
      for (NodeId consumer : facts_.consumers_of(node)) frontier.insert(consumer);
    };
    // A reduction that failed is tried again once the region has grown since.
    auto refill = [&] {
      for (const auto& [reduction, size] : failed) {
        if (draft.owned.size() > size) frontier.insert(reduction);
      }
      std::erase_if(refused, [&](const auto& other) { return frontier.count(other.first) > 0; });
    };
    for (NodeId node : draft.owned) push(node);
    size_t count = 1;
    while (!frontier.empty()) {
      if (count > 1 && passed.empty() && add_run(draft, frontier, count)) {
        count *= 2;
        if (frontier.empty()) refill();
        continue;
      }
      const NodeId node = *frontier.begin();
      frontier.erase(frontier.begin());
      if (draft.owned.count(node) || !free_node(node)) continue;
      count = 1;
      if (add(draft, node, passed)) {
        count = 2;
        push(node);
      } else if (facts_.view(node) && passed.size() < kMaxRegionNodes) {
        passed.insert(node);
        push(node);
      } else if (facts_.reduces(node)) {
        failed[node] = draft.owned.size();
      }
      if (frontier.empty()) refill();
    }
  }

  // Takes in up to `count` nodes of the frontier and behind it that reduce nothing, in the order in
  // which `forward` would, as one: a trial costs as much as the region is large. False, with
  // nothing changed, if there are no two of them or the region would not take them all.
  bool add_run(Draft& draft, std::set<NodeId>& frontier, size_t count) {
    std::set<NodeId> ahead = frontier;
    std::vector<NodeId> run, taken;
    Draft next = draft;
    while (!ahead.empty() && run.size() < count) {
      const NodeId node = *ahead.begin();
      if (!is_free(node)) {
        taken.push_back(node);
      } else if (!next.owned.count(node)) {
        if (facts_.reduces(node)) break;
        run.push_back(node);
        next.owned.insert(node);
        for (const NodeId consumer : facts_.consumers_of(node)) ahead.insert(consumer);
      }
      ahead.erase(node);
    }
    if (run.size() < 2) return false;
    auto shape = form_shape(facts_, next.owned, next.shared, taken_.pinned);
    if (!std::holds_alternative<CascadeCandidate>(shape)) return false;
    next.shape = std::get<CascadeCandidate>(std::move(shape));
    if (reenters(next) || !worth_one_pass(draft, next)) return false;
    if (next.shape.extraction.has_columns && !worth_contracting(next)) return false;
    for (const NodeId node : run) consulted_.emplace(node, true);
    for (const NodeId node : taken) consulted_.emplace(node, false);
    draft = std::move(next);
    frontier = std::move(ahead);
    return true;
  }

  void own_with_passed(Draft& draft, NodeId first, const std::set<NodeId>& passed) const {
    std::vector<NodeId> open{first};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      draft.owned.insert(node);
      for (ValueId read : facts_.reads(node)) {
        const NodeId producer = facts_.producer(read);
        if (passed.count(producer) && !draft.owned.count(producer)) open.push_back(producer);
      }
    }
  }

  bool add(Draft& draft, NodeId node, const std::set<NodeId>& passed) {
    Draft next = draft;
    own_with_passed(next, node, passed);
    auto shape = form_shape(facts_, next.owned, next.shared, taken_.pinned);
    if (auto* failure = std::get_if<CandidateRefusal>(&shape)) {
      if (tells(draft, node)) refused.emplace_back(node, failure->reason);
      return false;
    }
    next.shape = std::get<CascadeCandidate>(std::move(shape));
    if (reenters(next)) return false;
    if (!worth_one_pass(draft, next)) {
      if (tells(draft, node)) {
        refused.emplace_back(node,
                             "one pass would need more accumulators than a second pass costs");
      }
      return false;
    }
    if (next.shape.extraction.has_columns && !worth_contracting(next)) return false;
    if (facts_.reduces(node)) last_reduction = node;
    draft = std::move(next);
    return true;
  }

  // Producers that are not in the region yet can make two accumulators one, so they are counted
  // with those where the first count is too high.
  bool worth_one_pass(const Draft& draft, const Draft& next) {
    auto few = [](const Draft& a, const Draft& b) {
      return b.shape.derivation.streaming.accumulators.size() <=
             a.shape.derivation.streaming.accumulators.size() +
                 std::max(kMaxNewAccumulators, streamed_reads(b.shape));
    };
    if (few(draft, next)) return true;
    Draft before = draft, after = next;
    backward(before);
    backward(after);
    return few(before, after);
  }

  // Worth reporting: a reduction that stays outside, or the contraction that a softmax leads to. A
  // product that merely follows a norm is no cascade left unfused.
  bool tells(const Draft& draft, NodeId node) const {
    if (!facts_.reduces(node)) return false;
    if (!facts_.contracts(node)) return true;
    const auto& accumulators = draft.shape.derivation.streaming.accumulators;
    return !draft.shape.extraction.has_columns &&
           std::any_of(accumulators.begin(), accumulators.end(),
                       [](const Accumulator& a) { return a.form == Form::Rescaled; });
  }

  // Contracting the streamed axis in the region pays where it saves an intermediate of rows times
  // axis: where that intermediate is a rescaled softmax or starts from a contraction.
  bool worth_contracting(const Draft& draft) {
    if (draft.shape.extraction.maps_back) return false;
    for (const Accumulator& a : draft.shape.derivation.streaming.accumulators) {
      if (a.form == Form::Rescaled) return true;
    }
    Draft trial = draft;
    backward(trial);
    return std::any_of(trial.owned.begin(), trial.owned.end(), [&](NodeId node) {
      return facts_.contracts(node) && !draft.owned.count(node) && expansion(node) > 1;
    });
  }

  // The size of the node's result over that of what it is computed from.
  double expansion(NodeId node) const {
    double inputs = 0;
    for (ValueId read : facts_.reads(node)) inputs += facts_.nominal_size(read);
    return facts_.nominal_size(graph_.nodes[static_cast<size_t>(node)].outputs[0]) / inputs;
  }

  // A path that leaves the region and comes back would make a cycle of steps: no value that the
  // region reads may depend on what it computes.
  bool reenters(const Draft& draft) const {
    const NodeId first = *draft.owned.begin();
    std::set<NodeId> seen;
    std::vector<NodeId> stack;
    auto push = [&](const std::set<ValueId>& values) {
      for (ValueId value : values) {
        const NodeId producer = facts_.producer(value);
        if (producer >= first && seen.insert(producer).second) stack.push_back(producer);
      }
    };
    auto push_sizes = [&](NodeId node, bool inside) {
      for (NodeId source : facts_.size_sources(node)) {
        if (source < first || (inside && draft.owned.count(source))) continue;
        if (seen.insert(source).second) stack.push_back(source);
      }
    };
    push(values_read(draft.shape.extraction.cascade));
    for (NodeId node : draft.owned) push_sizes(node, true);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      if (draft.owned.count(node)) return true;
      push(facts_.reads(node));
      push_sizes(node, false);
    }
    return false;
  }

  // Producers, last first, so that all consumers of a node have been decided before it.
  void backward(Draft& draft) {
    std::set<NodeId> rejected;
    size_t count = 1;
    while (true) {
      if (count > 1 && absorb_run(draft, rejected, count)) {
        count *= 2;
        continue;
      }
      NodeId best = -1;
      for (ValueId value : values_read(draft.shape.extraction.cascade)) {
        const NodeId producer = facts_.producer(value);
        if (!free_node(producer)) continue;
        if (draft.owned.count(producer) || draft.shared.count(producer)) continue;
        if (!rejected.count(producer)) best = std::max(best, producer);
      }
      if (best < 0) return;
      count = absorb(draft, best) ? 2 : 1;
      if (count == 1) rejected.insert(best);
    }
  }

  // The same for up to `count` producers that reduce nothing, as one. False, with nothing changed,
  // if there are no two of them or the region would not take them all.
  bool absorb_run(Draft& draft, const std::set<NodeId>& rejected, size_t count) {
    Draft next = draft;
    std::set<NodeId> candidates, run;
    auto add_reads = [&](const std::set<ValueId>& reads) {
      for (const ValueId read : reads) {
        const NodeId producer = facts_.producer(read);
        if (!is_free(producer) || next.owned.count(producer) || next.shared.count(producer)) {
          continue;
        }
        if (!rejected.count(producer)) candidates.insert(producer);
      }
    };
    add_reads(values_read(draft.shape.extraction.cascade));
    while (!candidates.empty() && run.size() < count) {
      const NodeId node = *candidates.rbegin();
      candidates.erase(node);
      const Absorption how = absorption(next, node);
      if (how == Absorption::None || facts_.reduces(node)) break;
      (how == Absorption::Owned ? next.owned : next.shared).insert(node);
      run.insert(node);
      add_reads(facts_.reads(node));
    }
    if (run.size() < 2) return false;
    auto shape = form_shape(facts_, next.owned, next.shared, taken_.pinned);
    if (!std::holds_alternative<CascadeCandidate>(shape)) return false;
    next.shape = std::get<CascadeCandidate>(std::move(shape));
    if (reenters(next)) return false;
    for (const NodeId node : run) consulted_.emplace(node, true);
    draft = std::move(next);
    return true;
  }

  // A cast to a narrower type goes with the step that computes what it reads, and takes along what
  // leads to it alone: that step stores less, and the region reads less.
  void release_casts(Draft& draft) const {
    const std::set<NodeId> owned = draft.owned;
    for (const NodeId cast : owned) {
      if (!facts_.narrows(cast)) continue;
      const std::set<NodeId> released = leading_to(draft, cast);
      if (released.empty()) continue;
      Draft next = draft;
      for (const NodeId node : released) next.owned.erase(node);
      auto shape = form_shape(facts_, next.owned, next.shared, taken_.pinned);
      if (!std::holds_alternative<CascadeCandidate>(shape)) continue;
      next.shape = std::get<CascadeCandidate>(std::move(shape));
      if (!reenters(next)) draft = std::move(next);
    }
  }

  // The cast and the elementwise nodes of the region that only it needs; empty if one of them reads
  // what stays in the region or is a view, which is better read through than stored, or if none
  // reads what another step computes.
  std::set<NodeId> leading_to(const Draft& draft, NodeId cast) const {
    std::set<NodeId> nodes = {cast};
    bool computed = false;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      for (const ValueId read : facts_.reads(*it)) {
        const NodeId producer = facts_.producer(read);
        if (producer < 0 || draft.shared.count(producer)) continue;
        if (draft.owned.count(producer) == 0) {
          computed = computed || free_node(producer);
          continue;
        }
        const auto consumers = facts_.consumers_of(producer);
        const bool only_ours =
            std::all_of(consumers.begin(), consumers.end(),
                        [&](NodeId consumer) { return nodes.count(consumer) > 0; });
        if (!only_ours || facts_.reduces(producer) || facts_.view(producer)) return {};
        nodes.insert(producer);
      }
    }
    return computed ? nodes : std::set<NodeId>();
  }

  enum class Absorption { None, Owned, Shared };

  // How the region may take in a producer: for itself, or computed again.
  Absorption absorption(const Draft& draft, NodeId node) const {
    if (completes_product(facts_, node)) return Absorption::None;
    const auto consumers = facts_.consumers_of(node);
    const auto& outputs = graph_.nodes[static_cast<size_t>(node)].outputs;
    const bool published = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      return v != kAbsent && (facts_.is_output(v) || taken_.pinned.count(v));
    });
    const bool ours =
        !published && std::all_of(consumers.begin(), consumers.end(),
                                  [&](NodeId consumer) { return draft.owned.count(consumer) > 0; });
    const bool again =
        facts_.view(node) || (!facts_.reduces(node) && facts_.recomputed(outputs[0]));
    return ours ? Absorption::Owned : again ? Absorption::Shared : Absorption::None;
  }

  bool absorb(Draft& draft, NodeId node) {
    const Absorption how = absorption(draft, node);
    if (how == Absorption::None) return false;
    if (facts_.contracts(node) &&
        !reads_as_tile(*graph_.pool, draft.shape.extraction.cascade,
                       graph_.nodes[static_cast<size_t>(node)].outputs[0])) {
      return false;
    }
    Draft next = draft;
    (how == Absorption::Owned ? next.owned : next.shared).insert(node);
    auto shape = form_shape(facts_, next.owned, next.shared, taken_.pinned);
    if (!std::holds_alternative<CascadeCandidate>(shape)) return false;
    next.shape = std::get<CascadeCandidate>(std::move(shape));
    if (reenters(next)) return false;
    draft = std::move(next);
    return true;
  }

  const GraphFacts& facts_;
  const Graph& graph_;
  const Taken& taken_;
  std::set<NodeId> banned_;
  mutable std::map<NodeId, bool> consulted_;
};

std::string user_name(const Graph& graph, NodeId node) {
  return graph.nodes[static_cast<size_t>(node)].name;
}

std::vector<std::string> user_names(const Graph& graph, const std::set<NodeId>& nodes) {
  std::vector<std::string> names;
  for (NodeId node : nodes) {
    const std::string name = user_name(graph, node);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Finder {
 public:
  Finder(const GraphFacts& facts, bool certify) : facts_(facts), certify_(certify) {}

  Regions run() {
    for (size_t node = 0; node < facts_.graph().nodes.size(); ++node) {
      const auto id = static_cast<NodeId>(node);
      if (facts_.live(id) && facts_.reduces(id) && !facts_.contracts(id) &&
          !taken_.nodes.count(id)) {
        start(id);
      }
    }
    for (size_t node = 0; node < facts_.graph().nodes.size(); ++node) {
      const auto id = static_cast<NodeId>(node);
      if (facts_.live(id) && facts_.contracts(id) && !taken_.nodes.count(id)) start_chain(id);
    }
    return std::move(regions_);
  }

 private:
  // Contraction, map, contraction with no reduction between, where the intermediate is larger than
  // what it comes from (attention by sigmoid or other elementwise weights).
  void start_chain(NodeId seed) {
    Grower grower(facts_, taken_, {});
    auto draft = grower.grow_back(seed);
    if (!draft || !draft->shape.extraction.has_columns) return;
    const Certificate certificate = certified(draft->shape);
    if (certificate.valid) accept(std::move(*draft), certificate);
  }

  void start(NodeId seed) {
    if (repeat(seed)) return;
    std::set<NodeId> banned;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      Grower grower(facts_, taken_, banned);
      auto draft = grower.grow(seed);
      for (auto& [node, reason] : grower.refused) report(seed, node, reason);
      if (!draft || !is_cascade(draft->shape)) return;
      const Certificate certificate = certified(draft->shape);
      if (certificate.valid) {
        if (attempt == 0) {
          const Cascade& cascade = draft->shape.extraction.cascade;
          remember(grower.growth(*draft, seed, fingerprint(*facts_.graph().pool, cascade)));
        }
        accept(std::move(*draft), certificate);
        return;
      }
      report(seed, grower.last_reduction, certificate.failure);
      if (grower.last_reduction == seed) return;
      banned.insert(grower.last_reduction);
    }
  }

  // The last growths that began with this operator, the latest last.
  std::vector<Growth>& growths_like(NodeId seed) {
    return growths_[facts_.graph().nodes[static_cast<size_t>(seed)].def];
  }

  void remember(Growth growth) {
    std::vector<Growth>& growths = growths_like(growth.seed);
    if (growths.size() == kMaxRepeated) growths.erase(growths.begin());
    growths.push_back(std::move(growth));
  }

  // Takes the region where an earlier growth would have found it from here.
  bool repeat(NodeId seed) {
    std::vector<Growth>& growths = growths_like(seed);
    for (size_t i = growths.size(); i-- > 0;) {
      const auto moved = moved_to(seed, growths[i], facts_, taken_);
      if (!moved) continue;
      Grower grower(facts_, taken_, {});
      auto draft = grower.repeat(*moved);
      if (!draft) continue;
      for (const auto& [node, reason] : moved->refused) report(seed, node, reason);
      const Certificate certificate = certified(draft->shape);
      accept(std::move(*draft), certificate);
      std::rotate(growths.begin() + static_cast<long>(i),
                  growths.begin() + static_cast<long>(i) + 1, growths.end());
      return true;
    }
    return false;
  }

  Certificate certified(const CascadeCandidate& shape) {
    if (!certify_) return {true, 0, 0, ""};
    ExprPool& pool = *facts_.graph().pool;
    const std::string key = fingerprint(pool, shape.extraction.cascade);
    auto [entry, inserted] = certificates_.try_emplace(key);
    if (inserted) {
      entry->second = redfuser::certify(pool, shape.extraction.cascade, shape.derivation.streaming);
    }
    return entry->second;
  }

  void accept(Draft draft, const Certificate& certificate) {
    taken_.nodes.insert(draft.owned.begin(), draft.owned.end());
    const auto reads = values_read(draft.shape.extraction.cascade);
    taken_.pinned.insert(reads.begin(), reads.end());
    Region region;
    region.owned = std::move(draft.owned);
    region.shared = std::move(draft.shared);
    region.region_class = class_of(draft.shape);
    region.extraction = std::move(draft.shape.extraction);
    region.derivation = std::move(draft.shape.derivation);
    region.certificate = certificate;
    regions_.fused.push_back(std::move(region));
  }

  void report(NodeId seed, NodeId node, const std::string& reason) {
    const Graph& graph = facts_.graph();
    UnfusedReport unfused{user_names(graph, {seed, node}), reason, user_name(graph, node)};
    for (const UnfusedReport& other : regions_.unfused) {
      if (other.nodes == unfused.nodes && other.reason == unfused.reason) return;
    }
    regions_.unfused.push_back(std::move(unfused));
  }

  const GraphFacts& facts_;
  bool certify_;
  Taken taken_;
  std::map<std::string, Certificate> certificates_;
  std::map<const OpDef*, std::vector<Growth>> growths_;
  Regions regions_;
};

}  // namespace

std::set<ValueId> Region::reads() const { return values_read(extraction.cascade); }

Regions find_regions(const GraphFacts& facts, bool certify) { return Finder(facts, certify).run(); }

}  // namespace redfuser
