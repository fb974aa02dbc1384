// Forming a cascade from a set of nodes; internal to src/fuse.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>

#include "fuse/regions.h"

namespace redfuser::fuse {

struct CascadeCandidate {
  cascade::Extraction extraction;
  cascade::Derivation derivation;
};

struct CandidateRefusal {
  std::string reason;
  bool algebra = false;  // the piece is a cascade, but a stage has no incremental form
};

// What more nodes gain in one pass is little by then, and each is tried with all of those before.
inline constexpr size_t kMaxRegionNodes = 512;

// The cascade of the nodes `owned` and `shared`; outputs are what others use of `owned`, `pinned`
// values (read by other regions) included.
std::variant<CascadeCandidate, CandidateRefusal> try_cascade(const NodeFacts& facts,
                                                             const std::set<ir::NodeId>& owned,
                                                             const std::set<ir::NodeId>& shared,
                                                             const std::set<ir::ValueId>& pinned);

// What the report calls it: attention, chain, product, row, other.
std::string class_of(const CascadeCandidate& shape);
// One reduction whose result goes out as it is needs no fusion.
bool is_cascade(const CascadeCandidate& shape);

// Values that the cascade reads.
std::set<ir::ValueId> values_read(const cascade::Cascade& cascade);

}  // namespace redfuser::fuse
