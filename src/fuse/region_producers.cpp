// Growth of a region over the producers of its inputs, and nodes that it leaves to other steps.
#include <algorithm>
#include <map>

#include "fuse/product_addends.h"
#include "fuse/region_grower.h"
#include "fuse/tile_reads.h"

namespace redfuser::fuse {

bool RegionGrower::form(RegionDraft& draft) const {
  const Candidate& shape = candidate(draft);
  if (!std::holds_alternative<CascadeCandidate>(shape)) return false;
  draft.shape = std::get<CascadeCandidate>(shape);
  return !reenters(draft);
}

bool RegionGrower::reenters(const RegionDraft& draft) const {
  const ir::NodeId first = *draft.owned.begin();
  std::set<ir::NodeId> seen;
  std::vector<ir::NodeId> stack;
  auto push = [&](const std::set<ir::ValueId>& values) {
    for (ir::ValueId value : values) {
      const ir::NodeId producer = facts_.producer(value);
      if (producer >= first && seen.insert(producer).second) stack.push_back(producer);
    }
  };
  auto push_sizes = [&](ir::NodeId node, bool inside) {
    for (ir::NodeId source : facts_.size_sources(node)) {
      if (source < first || (inside && draft.owned.count(source))) continue;
      if (seen.insert(source).second) stack.push_back(source);
    }
  };
  push(values_read(draft.shape.extraction.cascade));
  for (ir::NodeId node : draft.owned) push_sizes(node, true);
  while (!stack.empty()) {
    const ir::NodeId node = stack.back();
    stack.pop_back();
    if (draft.owned.count(node)) return true;
    push(facts_.reads(node));
    push_sizes(node, false);
  }
  return false;
}

void RegionGrower::backward(RegionDraft& draft) {
  std::set<ir::NodeId> rejected;
  size_t count = 1;
  while (true) {
    if (count > 1 && absorb_run(draft, rejected, count)) {
      count *= 2;
      continue;
    }
    ir::NodeId best = -1;
    for (ir::ValueId value : values_read(draft.shape.extraction.cascade)) {
      const ir::NodeId producer = facts_.producer(value);
      if (!consult(producer)) continue;
      if (draft.owned.count(producer) || draft.shared.count(producer)) continue;
      if (!rejected.count(producer)) best = std::max(best, producer);
    }
    if (best < 0) return;
    count = absorb(draft, best) ? 2 : 1;
    if (count == 1) rejected.insert(best);
  }
}

bool RegionGrower::absorb_run(RegionDraft& draft, const std::set<ir::NodeId>& rejected,
                              size_t count) {
  RegionDraft next = draft;
  std::set<ir::NodeId> candidates, run;
  auto add_reads = [&](const std::set<ir::ValueId>& reads) {
    for (const ir::ValueId read : reads) {
      const ir::NodeId producer = facts_.producer(read);
      if (!is_free(producer) || next.owned.count(producer) || next.shared.count(producer)) {
        continue;
      }
      if (!rejected.count(producer)) candidates.insert(producer);
    }
  };
  add_reads(values_read(draft.shape.extraction.cascade));
  while (!candidates.empty() && run.size() < count) {
    const ir::NodeId node = *candidates.rbegin();
    candidates.erase(node);
    const Absorption how = absorption(next, node);
    if (how == Absorption::None || how == Absorption::Written || facts_.reduces(node)) break;
    (how == Absorption::Owned ? next.owned : next.shared).insert(node);
    run.insert(node);
    add_reads(facts_.reads(node));
  }
  if (run.size() < 2) return false;
  if (!form(next)) return false;
  for (const ir::NodeId node : run) consulted_.emplace(node, true);
  draft = std::move(next);
  return true;
}

void RegionGrower::release_casts(RegionDraft& draft) const {
  const std::set<ir::NodeId> owned = draft.owned;
  for (const ir::NodeId cast : owned) {
    if (!facts_.narrows(cast)) continue;
    const std::set<ir::NodeId> released = leading_to(draft, cast);
    if (released.empty()) continue;
    RegionDraft next = draft;
    for (const ir::NodeId node : released) next.owned.erase(node);
    if (form(next)) draft = std::move(next);
  }
}

std::set<ir::NodeId> RegionGrower::leading_to(const RegionDraft& draft, ir::NodeId cast) const {
  std::set<ir::NodeId> nodes = {cast};
  bool computed = false;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    for (const ir::ValueId read : facts_.reads(*it)) {
      const ir::NodeId producer = facts_.producer(read);
      if (producer < 0 || draft.shared.count(producer)) continue;
      if (draft.owned.count(producer) == 0) {
        computed = computed || consult(producer);
        continue;
      }
      const auto consumers = facts_.consumers_of(producer);
      const bool only_ours =
          std::all_of(consumers.begin(), consumers.end(),
                      [&](ir::NodeId consumer) { return nodes.count(consumer) > 0; });
      if (!only_ours || facts_.reduces(producer) || facts_.view(producer)) return {};
      nodes.insert(producer);
    }
  }
  return computed ? nodes : std::set<ir::NodeId>();
}

void RegionGrower::release_unpacked(RegionDraft& draft) const {
  const std::set<ir::NodeId> owned = draft.owned;
  for (const ir::NodeId node : owned) {
    if (!facts_.unpacks(node) || !reads_own_codes(draft, node)) continue;
    const std::set<ir::NodeId> released = between_products(draft, node);
    if (released.empty()) continue;
    RegionDraft next = draft;
    for (const ir::NodeId each : released) next.owned.erase(each);
    if (form(next)) draft = std::move(next);
  }
}

void RegionGrower::release_aliases(RegionDraft& draft) const {
  const auto inside = [&](ir::NodeId node) { return draft.owned.count(node) > 0; };
  std::map<ir::ValueId, std::vector<ir::NodeId>> aliases;  // results, by what they rename
  for (const ir::NodeId node : draft.owned) {
    const auto consumers = facts_.consumers_of(node);
    if (!facts_.renames(node) || std::any_of(consumers.begin(), consumers.end(), inside)) continue;
    const ir::ValueId source = *facts_.reads(node).begin();
    if (inside(facts_.producer(source))) aliases[source].push_back(node);
  }
  for (const auto& [source, nodes] : aliases) {
    const auto& readers = facts_.consumers(source);
    const bool stored = nodes.size() > 1 || facts_.is_output(source) ||
                        taken_.pinned.count(source) > 0 ||
                        !std::all_of(readers.begin(), readers.end(), inside);
    if (!stored) continue;
    RegionDraft next = draft;
    for (const ir::NodeId node : nodes) next.owned.erase(node);
    if (form(next)) draft = std::move(next);
  }
}

bool RegionGrower::reads_own_codes(const RegionDraft& draft, ir::NodeId node) const {
  const auto& reads = facts_.reads(node);
  return std::any_of(reads.begin(), reads.end(), [&](ir::ValueId read) {
    return draft.owned.count(facts_.producer(read)) > 0 &&
           is_low_bit_float(graph_.values[static_cast<size_t>(read)].dtype);
  });
}

std::set<ir::NodeId> RegionGrower::between_products(const RegionDraft& draft,
                                                    ir::NodeId first) const {
  std::set<ir::NodeId> nodes = {first};
  for (auto it = nodes.begin(); it != nodes.end(); ++it) {
    if (facts_.contracts(*it)) {
      if (draft.owned.count(*it)) return {};
      continue;
    }
    if (!facts_.view(*it) && !facts_.unpacks(*it) && !facts_.narrows(*it)) return {};
    for (const ir::ValueId output : graph_.nodes[static_cast<size_t>(*it)].outputs) {
      if (output != ir::kAbsent && (facts_.is_output(output) || taken_.pinned.count(output))) {
        return {};
      }
    }
    const auto consumers = facts_.consumers_of(*it);
    nodes.insert(consumers.begin(), consumers.end());
  }
  return nodes;
}

std::set<ir::NodeId> RegionGrower::producers_within_reach(ir::NodeId seed) const {
  std::set<ir::NodeId> nodes = {seed};
  std::vector<ir::NodeId> open = {seed};
  while (!open.empty()) {
    const ir::NodeId node = open.back();
    open.pop_back();
    for (const ir::ValueId read : facts_.reads(node)) {
      const ir::NodeId producer = facts_.producer(read);
      if (!is_free(producer) || nodes.count(producer) || stays_outside(producer)) continue;
      nodes.insert(producer);
      open.push_back(producer);
    }
  }
  return nodes;
}

bool RegionGrower::stays_outside(ir::NodeId node) const {
  if (completes_product(facts_, node)) return true;
  const auto consumers = facts_.consumers_of(node);
  const auto& outputs = graph_.nodes[static_cast<size_t>(node)].outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](ir::ValueId v) {
    return v != ir::kAbsent &&
           std::any_of(consumers.begin(), consumers.end(),
                       [&](ir::NodeId consumer) { return facts_.binds_by(consumer, v); });
  });
}

RegionGrower::Absorption RegionGrower::absorption(const RegionDraft& draft, ir::NodeId node) const {
  if (stays_outside(node)) return Absorption::None;
  const auto consumers = facts_.consumers_of(node);
  const auto& outputs = graph_.nodes[static_cast<size_t>(node)].outputs;
  const bool published = std::any_of(outputs.begin(), outputs.end(), [&](ir::ValueId v) {
    return v != ir::kAbsent && (facts_.is_output(v) || taken_.pinned.count(v));
  });
  const bool ours =
      !published && std::all_of(consumers.begin(), consumers.end(), [&](ir::NodeId consumer) {
        return draft.owned.count(consumer) > 0;
      });
  const bool again = facts_.view(node) || (!facts_.reduces(node) && facts_.recomputed(outputs[0]));
  if (ours) return Absorption::Owned;
  if (again) return Absorption::Shared;
  return may_write(node) ? Absorption::Written : Absorption::None;
}

bool RegionGrower::may_write(ir::NodeId node) const {
  std::set<ir::NodeId> open = {node};
  for (size_t count = 0; !open.empty(); ++count) {
    if (count == kMaxRegionNodes) return false;
    const ir::NodeId at = *open.rbegin();
    open.erase(at);
    if (facts_.contracts(at)) return false;
    if (facts_.reduces(at) || !facts_.lowered(at) || facts_.runs(at)) {
      if (at == node) return false;
      continue;
    }
    for (const ir::ValueId read : facts_.reads(at)) {
      if (facts_.producer(read) >= 0) open.insert(facts_.producer(read));
    }
  }
  return true;
}

namespace {

// Whether a body reads other values at its own axes alone, in their order: it moves no element.
bool stays_in_place(const cascade::CascadeOutput& output) {
  bool result = true;
  visit(output.body, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || e->integer < 0) return;
    auto from = output.axes.begin();
    for (ir::Expr index : e->args) {
      if (index->is_constant()) continue;
      from = std::find(from, output.axes.end(), index);
      result &= from != output.axes.end();
      if (!result) return;
      ++from;
    }
  });
  return result;
}

// Whether a cascade of rows has exactly one element of the value for each of its own, where others
// have theirs.
bool writes_elements(const cascade::Extraction& extraction, ir::ValueId value) {
  if (extraction.has_producer || extraction.has_columns) return false;
  const cascade::Cascade& cascade = extraction.cascade;
  const auto output = std::find_if(cascade.outputs.begin(), cascade.outputs.end(),
                                   [&](const auto& each) { return each.value == value; });
  return output != cascade.outputs.end() && output->maps_back && stays_in_place(*output) &&
         std::all_of(cascade.rows.begin(), cascade.rows.end(), [&](ir::Expr row) {
           return std::find(output->axes.begin(), output->axes.end(), row) != output->axes.end();
         });
}

}  // namespace

bool RegionGrower::absorb(RegionDraft& draft, ir::NodeId node) {
  const Absorption how = absorption(draft, node);
  if (how == Absorption::None) return false;
  if (facts_.contracts(node) &&
      !reads_as_tile(*graph_.pool, draft.shape.extraction.cascade,
                     graph_.nodes[static_cast<size_t>(node)].outputs[0])) {
    return false;
  }
  RegionDraft next = draft;
  (how == Absorption::Shared ? next.shared : next.owned).insert(node);
  if (!form(next)) return false;
  const ir::ValueId result = graph_.nodes[static_cast<size_t>(node)].outputs[0];
  if (how == Absorption::Written && !writes_elements(next.shape.extraction, result)) return false;
  draft = std::move(next);
  return true;
}

}  // namespace redfuser::fuse
