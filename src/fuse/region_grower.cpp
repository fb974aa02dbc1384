#include "fuse/region_grower.h"

#include <algorithm>

#include "ir/contraction.h"
#include "ops/lowering.h"

namespace redfuser::fuse {
namespace {

// One pass with new accumulators is cheaper than a second pass if a stage adds at most so many, or
// at most as many as the values that the second pass would read per element.
constexpr size_t kMaxNewAccumulators = 2;
// A fused chain of products pays if what the last one contracts is much larger than the inputs of
// one before. Feed-forward layers expand four times and are faster as two products.
constexpr double kMinChainExpansion = 4;

// Reads per element of the streamed axis in the last stage.
size_t streamed_reads(const CascadeCandidate& shape) {
  const cascade::Cascade& cascade = shape.extraction.cascade;
  size_t count = 0;
  visit(cascade.stages.back().body,
        [&](ir::Expr e) { count += e->op == ir::ExprOp::Read && e->depends_on(cascade.stream); });
  return count;
}

}  // namespace

RegionTrace RegionGrower::growth(const RegionDraft& draft, ir::NodeId seed,
                                 const std::string& fingerprint) const {
  RegionTrace growth{seed, last_reduction, draft.owned, draft.shared, refused, consulted_, {}, {}};
  growth.consulted.emplace(seed, true);
  for (const auto& [node, free] : growth.consulted) {
    for (const ir::ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
      if (taken_.pinned.count(output)) growth.pinned.insert(output);
    }
  }
  growth.fingerprint = fingerprint;
  return growth;
}

std::optional<RegionDraft> RegionGrower::repeat(const RegionTrace& moved) {
  RegionDraft draft;
  draft.owned = moved.owned;
  draft.shared = moved.shared;
  if (!form(draft)) return std::nullopt;
  const std::string here = fingerprint(draft.shape.extraction.cascade);
  if (here != moved.fingerprint) return std::nullopt;
  finish(draft);
  return draft;
}

std::optional<RegionDraft> RegionGrower::grow(ir::NodeId seed) {
  RegionDraft draft;
  draft.owned = {seed};
  const Candidate& shape = candidate(draft);
  if (auto* failure = std::get_if<CandidateRefusal>(&shape)) {
    refused.emplace_back(seed, failure->reason);
    return std::nullopt;
  }
  draft.shape = std::get<CascadeCandidate>(shape);
  last_reduction = seed;
  forward(draft);
  backward(draft);
  release_casts(draft);
  release_unpacked(draft);
  release_aliases(draft);
  finish(draft);
  return draft;
}

std::optional<RegionDraft> RegionGrower::grow_back(ir::NodeId seed) {
  RegionDraft draft;
  draft.owned = producers_within_reach(seed);
  if (!expands_before(draft, seed)) return std::nullopt;
  draft.owned = {seed};
  if (!form(draft)) return std::nullopt;
  backward(draft);
  if (!expands_before(draft, seed)) return std::nullopt;
  finish(draft);
  return draft;
}

bool RegionGrower::expands_before(const RegionDraft& draft, ir::NodeId seed) const {
  double intermediate = 0;
  for (const ir::ValueId read : facts_.reads(seed)) {
    if (!draft.owned.count(facts_.producer(read))) continue;
    intermediate = std::max(intermediate, facts_.nominal_size(read));
  }
  return std::any_of(draft.owned.begin(), draft.owned.end(), [&](ir::NodeId node) {
    return node != seed && facts_.contracts(node) &&
           intermediate > kMinChainExpansion * inputs_size(node);
  });
}

const RegionGrower::Candidate& RegionGrower::candidate(const RegionDraft& draft) const {
  const auto [entry, added] = tried_.try_emplace({draft.owned, draft.shared});
  if (added) {
    entry->second = sizes_itself(draft)
                        ? Candidate(CandidateRefusal{"a size follows from what it computes"})
                        : try_cascade(facts_, memo_, draft.owned, draft.shared, taken_.pinned,
                                      cascade::Axes::Shared);
  }
  return entry->second;
}

bool RegionGrower::sizes_itself(const RegionDraft& draft) const {
  const auto has = [&](ir::NodeId node) {
    return draft.owned.count(node) > 0 || draft.shared.count(node) > 0;
  };
  const auto sizes = [&](ir::NodeId node) {
    const auto& reads = facts_.reads(node);
    return facts_.binds(node) && std::any_of(reads.begin(), reads.end(), [&](ir::ValueId read) {
             return facts_.binds_by(node, read) && has(facts_.producer(read));
           });
  };
  return std::any_of(draft.owned.begin(), draft.owned.end(), sizes) ||
         std::any_of(draft.shared.begin(), draft.shared.end(), sizes);
}

void RegionGrower::finish(RegionDraft& draft) const {
  auto shape =
      try_cascade(facts_, memo_, draft.owned, draft.shared, taken_.pinned, cascade::Axes::Own);
  if (auto* own = std::get_if<CascadeCandidate>(&shape)) draft.shape = std::move(*own);
}

bool RegionGrower::is_free(ir::NodeId node) const {
  return node >= 0 && taken_.nodes.count(node) == 0 && banned_.count(node) == 0 &&
         facts_.lowered(node) && !facts_.runs(node);
}

bool RegionGrower::consult(ir::NodeId node) const {
  if (node < 0) return false;
  const bool free = is_free(node);
  consulted_.emplace(node, free);
  return free;
}

void RegionGrower::forward(RegionDraft& draft) {
  std::set<ir::NodeId> frontier, passed;
  std::map<ir::NodeId, size_t> failed;  // with the number of owned nodes at that time
  auto push = [&](ir::NodeId node) {
    for (ir::NodeId consumer : facts_.consumers_of(node)) frontier.insert(consumer);
  };
  // A refused reduction is tried again after the region has grown.
  auto refill = [&] {
    for (const auto& [reduction, size] : failed) {
      if (draft.owned.size() > size) frontier.insert(reduction);
    }
    std::erase_if(refused, [&](const auto& other) { return frontier.count(other.first) > 0; });
  };
  for (ir::NodeId node : draft.owned) push(node);
  size_t count = 1;
  while (!frontier.empty()) {
    if (count > 1 && passed.empty() && add_run(draft, frontier, count)) {
      count *= 2;
      if (frontier.empty()) refill();
      continue;
    }
    const ir::NodeId node = *frontier.begin();
    frontier.erase(frontier.begin());
    if (draft.owned.count(node) || !consult(node)) continue;
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

bool RegionGrower::add_run(RegionDraft& draft, std::set<ir::NodeId>& frontier, size_t count) {
  std::set<ir::NodeId> ahead = frontier;
  std::vector<ir::NodeId> run, taken;
  RegionDraft next = draft;
  while (!ahead.empty() && run.size() < count) {
    const ir::NodeId node = *ahead.begin();
    if (!is_free(node)) {
      taken.push_back(node);
    } else if (!next.owned.count(node)) {
      if (facts_.reduces(node)) break;
      run.push_back(node);
      next.owned.insert(node);
      for (const ir::NodeId consumer : facts_.consumers_of(node)) ahead.insert(consumer);
    }
    ahead.erase(node);
  }
  if (run.size() < 2) return false;
  if (!form(next)) return false;
  if (!worth_one_pass(draft, next)) return false;
  if (next.shape.extraction.has_columns && !worth_contracting(next)) return false;
  for (const ir::NodeId node : run) consulted_.emplace(node, true);
  for (const ir::NodeId node : taken) consulted_.emplace(node, false);
  draft = std::move(next);
  frontier = std::move(ahead);
  return true;
}

void RegionGrower::own_with_passed(RegionDraft& draft, ir::NodeId first,
                                   const std::set<ir::NodeId>& passed) const {
  std::vector<ir::NodeId> open{first};
  while (!open.empty()) {
    const ir::NodeId node = open.back();
    open.pop_back();
    draft.owned.insert(node);
    for (ir::ValueId read : facts_.reads(node)) {
      const ir::NodeId producer = facts_.producer(read);
      if (passed.count(producer) && !draft.owned.count(producer)) open.push_back(producer);
    }
  }
}

bool RegionGrower::add(RegionDraft& draft, ir::NodeId node, const std::set<ir::NodeId>& passed) {
  RegionDraft next = draft;
  own_with_passed(next, node, passed);
  const bool reported = worth_reporting(draft, node);
  if (!reported && stores_what_it_contracts(next, node)) return false;
  const Candidate& shape = candidate(next);
  if (auto* failure = std::get_if<CandidateRefusal>(&shape)) {
    if (reported) refused.emplace_back(node, failure->reason);
    return false;
  }
  next.shape = std::get<CascadeCandidate>(shape);
  if (reenters(next)) return false;
  const bool columns = next.shape.extraction.has_columns;
  // What the last test would refuse without a trial needs none of the trials before it, unless
  // their reason is reported.
  if (columns && next.shape.extraction.maps_back && !reported) return false;
  if (!worth_one_pass(draft, next)) {
    if (reported) {
      refused.emplace_back(node, "one pass would need more accumulators than a second pass costs");
    }
    return false;
  }
  if (columns && !worth_contracting(next)) return false;
  if (facts_.reduces(node)) last_reduction = node;
  draft = std::move(next);
  return true;
}

bool RegionGrower::stores_what_it_contracts(const RegionDraft& next, ir::NodeId node) const {
  if (!facts_.contracts(node)) return false;
  const ir::ValueId result = graph_.nodes[static_cast<size_t>(node)].outputs[0];
  const auto stored = [&](ir::ValueId value) {
    const auto& outputs = next.shape.extraction.cascade.outputs;
    const auto& readers = facts_.consumers(value);
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& each) { return each.value == value && each.maps_back; }) &&
           (facts_.is_output(value) || taken_.pinned.count(value) > 0 ||
            std::any_of(readers.begin(), readers.end(),
                        [&](ir::NodeId reader) { return next.owned.count(reader) == 0; }));
  };
  ops::Lowering lowering(
      graph_, [&](ir::ValueId value) { return value == result; }, &memo_);
  const ir::Expr body = lowering.element(result, ops::shared_index(graph_, result));
  const auto contraction = ir::as_contraction(*graph_.pool, body);
  if (!contraction) return false;
  const auto read_by = [&](ir::Expr factor) {
    const ir::Expr read = ir::without_float_casts(factor);
    return read->op == ir::ExprOp::Read && read->integer >= 0 &&
           stored(static_cast<ir::ValueId>(read->integer));
  };
  const auto has_more_axes = [](ir::Expr factor, ir::Expr than) {
    return !std::includes(than->free_axes.begin(), than->free_axes.end(), factor->free_axes.begin(),
                          factor->free_axes.end());
  };
  return (read_by(contraction->a) && has_more_axes(contraction->b, contraction->a)) ||
         (read_by(contraction->b) && has_more_axes(contraction->a, contraction->b));
}

bool RegionGrower::worth_one_pass(const RegionDraft& draft, const RegionDraft& next) {
  auto few = [](const RegionDraft& a, const RegionDraft& b) {
    return b.shape.derivation.streaming.accumulators.size() <=
           a.shape.derivation.streaming.accumulators.size() +
               std::max(kMaxNewAccumulators, streamed_reads(b.shape));
  };
  if (few(draft, next)) return true;
  RegionDraft before = draft, after = next;
  backward(before);
  backward(after);
  return few(before, after);
}

bool RegionGrower::worth_reporting(const RegionDraft& draft, ir::NodeId node) const {
  if (!facts_.reduces(node)) return false;
  if (!facts_.contracts(node)) return true;
  const auto& accumulators = draft.shape.derivation.streaming.accumulators;
  return !draft.shape.extraction.has_columns &&
         std::any_of(accumulators.begin(), accumulators.end(), [](const cascade::Accumulator& a) {
           return a.form == cascade::Form::Rescaled;
         });
}

bool RegionGrower::worth_contracting(const RegionDraft& draft) {
  if (draft.shape.extraction.maps_back) return false;
  for (const cascade::Accumulator& a : draft.shape.derivation.streaming.accumulators) {
    if (a.form == cascade::Form::Rescaled) return true;
  }
  RegionDraft trial = draft;
  backward(trial);
  return std::any_of(trial.owned.begin(), trial.owned.end(), [&](ir::NodeId node) {
    return facts_.contracts(node) && !draft.owned.count(node) && expands(node);
  });
}

double RegionGrower::inputs_size(ir::NodeId node) const {
  double size = 0;
  for (ir::ValueId read : facts_.reads(node)) size += facts_.nominal_size(read);
  return size;
}

bool RegionGrower::expands(ir::NodeId node) const {
  const ir::ValueId result = graph_.nodes[static_cast<size_t>(node)].outputs[0];
  return facts_.nominal_size(result) > inputs_size(node);
}

}  // namespace redfuser::fuse
