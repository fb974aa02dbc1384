#include "fuse/regions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "fuse/region_grower.h"

namespace redfuser::fuse {
namespace {

constexpr int kMaxAttempts = 4;
constexpr size_t kMaxRepeated = 4;  // traces kept per operator: places of it in one layer

std::string user_name(const ir::Graph& graph, ir::NodeId node) {
  return graph.nodes[static_cast<size_t>(node)].name;
}

std::vector<std::string> user_names(const ir::Graph& graph, const std::set<ir::NodeId>& nodes) {
  std::vector<std::string> names;
  for (ir::NodeId node : nodes) {
    const std::string name = user_name(graph, node);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Finder {
 public:
  Finder(const NodeFacts& facts, bool certify, const std::set<ir::NodeId>& separate)
      : facts_(facts), certify_(certify) {
    taken_.nodes = separate;
  }

  Regions run() {
    for (size_t node = 0; node < facts_.graph().nodes.size(); ++node) {
      const auto id = static_cast<ir::NodeId>(node);
      if (facts_.live(id) && facts_.reduces(id) && !facts_.contracts(id) && !facts_.runs(id) &&
          !taken_.nodes.count(id)) {
        start(id);
      }
    }
    for (size_t node = 0; node < facts_.graph().nodes.size(); ++node) {
      const auto id = static_cast<ir::NodeId>(node);
      if (facts_.live(id) && facts_.contracts(id) && !taken_.nodes.count(id)) start_chain(id);
    }
    return std::move(regions_);
  }

 private:
  // Contraction, elementwise nodes, contraction, if the intermediate is larger than the inputs
  // (attention with sigmoid or other elementwise weights).
  void start_chain(ir::NodeId seed) {
    RegionGrower grower(facts_, memo_, taken_, {});
    auto draft = grower.grow_back(seed);
    if (!draft || !draft->shape.extraction.has_columns) return;
    const cascade::Certificate certificate = certified(draft->shape);
    if (certificate.valid) accept(std::move(*draft), certificate);
  }

  void start(ir::NodeId seed) {
    if (repeat(seed)) return;
    std::set<ir::NodeId> banned;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      RegionGrower grower(facts_, memo_, taken_, banned);
      auto draft = grower.grow(seed);
      for (auto& [node, reason] : grower.refused) report(seed, node, reason);
      if (!draft || !is_cascade(draft->shape)) return;
      const cascade::Certificate certificate = certified(draft->shape);
      if (certificate.valid) {
        if (attempt == 0) {
          const cascade::Cascade& cascade = draft->shape.extraction.cascade;
          remember(grower.growth(*draft, seed, fingerprint(cascade)));
        }
        accept(std::move(*draft), certificate);
        return;
      }
      report(seed, grower.last_reduction, certificate.failure);
      if (grower.last_reduction == seed) return;
      banned.insert(grower.last_reduction);
    }
  }

  // The last traces that began with this operator, the latest last.
  std::vector<RegionTrace>& growths_like(ir::NodeId seed) {
    return growths_[facts_.graph().nodes[static_cast<size_t>(seed)].def];
  }

  void remember(RegionTrace growth) {
    std::vector<RegionTrace>& growths = growths_like(growth.seed);
    if (growths.size() == kMaxRepeated) growths.erase(growths.begin());
    growths.push_back(std::move(growth));
  }

  // Replays an earlier trace from this seed.
  bool repeat(ir::NodeId seed) {
    std::vector<RegionTrace>& growths = growths_like(seed);
    for (size_t i = growths.size(); i-- > 0;) {
      const auto moved = replay_at(seed, growths[i], facts_, taken_);
      if (!moved) continue;
      RegionGrower grower(facts_, memo_, taken_, {});
      auto draft = grower.repeat(*moved);
      if (!draft) continue;
      for (const auto& [node, reason] : moved->refused) report(seed, node, reason);
      const cascade::Certificate certificate = certified(draft->shape);
      accept(std::move(*draft), certificate);
      std::rotate(growths.begin() + static_cast<long>(i),
                  growths.begin() + static_cast<long>(i) + 1, growths.end());
      return true;
    }
    return false;
  }

  cascade::Certificate certified(const CascadeCandidate& shape) {
    if (!certify_) return {true, 0, 0, 0, ""};
    ir::ExprPool& pool = *facts_.graph().pool;
    const std::string key = fingerprint(shape.extraction.cascade);
    auto [entry, inserted] = certificates_.try_emplace(key);
    if (inserted) {
      entry->second = redfuser::cascade::certify(pool, shape.extraction.cascade,
                                                 shape.derivation.streaming, &known_);
    }
    return entry->second;
  }

  void accept(RegionDraft draft, const cascade::Certificate& certificate) {
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

  void report(ir::NodeId seed, ir::NodeId node, const std::string& reason) {
    const ir::Graph& graph = facts_.graph();
    cascade::UnfusedReport unfused{user_names(graph, {seed, node}), reason, user_name(graph, node)};
    for (const cascade::UnfusedReport& other : regions_.unfused) {
      if (other.nodes == unfused.nodes && other.reason == unfused.reason) return;
    }
    regions_.unfused.push_back(std::move(unfused));
  }

  const NodeFacts& facts_;
  bool certify_;
  ops::LoweringMemo memo_;
  Claimed taken_;
  std::map<std::string, cascade::Certificate> certificates_;
  cascade::CertificateMemo known_;
  std::map<const ops::OpDef*, std::vector<RegionTrace>> growths_;
  Regions regions_;
};

}  // namespace

std::set<ir::ValueId> Region::reads() const { return values_read(extraction.cascade); }

Regions find_regions(const NodeFacts& facts, bool certify, const std::set<ir::NodeId>& separate) {
  return Finder(facts, certify, separate).run();
}

}  // namespace redfuser::fuse
