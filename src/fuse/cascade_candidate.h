// Forming a cascade from a set of nodes; internal to src/fuse.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>

#include "fuse/regions.h"
#include "ops/lowering.h"

namespace redfuser::fuse {

struct CascadeCandidate {
  cascade::Extraction extraction;
  cascade::Derivation derivation;
};

struct CandidateRefusal {
  std::string reason;
  bool algebra = false;  // the nodes are a cascade, but a stage has no incremental form
};

// The largest region: each further node costs a trial of the whole region and gains little.
inline constexpr size_t kMaxRegionNodes = 512;

// The cascade of the nodes `owned` and `shared`. Its outputs are the values of `owned` that other
// nodes use, including `pinned` values (read by other regions). `memo` serves all trials on the
// graph.
std::variant<CascadeCandidate, CandidateRefusal> try_cascade(
    const NodeFacts& facts, ops::LoweringMemo& memo, const std::set<ir::NodeId>& owned,
    const std::set<ir::NodeId>& shared, const std::set<ir::ValueId>& pinned, cascade::Axes axes);

// The class in the report: attention, chain, product, row, other.
std::string class_of(const CascadeCandidate& shape);
// False for a single reduction whose result is the only output and that does not rank: it needs no
// fusion. A ranking has its values and indices from one order.
bool is_cascade(const CascadeCandidate& shape);

// Values that the cascade reads.
std::set<ir::ValueId> values_read(const cascade::Cascade& cascade);

}  // namespace redfuser::fuse
