// Fused regions: pieces of the graph that are cascades, found by dependence and grown by algebra.
#pragma once

#include <set>
#include <vector>

#include "cascade/certify/certificate.h"
#include "cascade/derive/derive.h"
#include "cascade/extract/extract.h"
#include "fuse/node_facts.h"

namespace redfuser::fuse {

struct Region {
  std::set<ir::NodeId> owned;   // computed here only
  std::set<ir::NodeId> shared;  // views and masks computed here and perhaps elsewhere too
  cascade::Extraction extraction;
  cascade::Derivation derivation;
  cascade::Certificate certificate;
  std::string region_class;  // attention, row, product, other

  // Values read from outside.
  std::set<ir::ValueId> reads() const;
};

struct Regions {
  std::vector<Region> fused;
  std::vector<cascade::UnfusedReport> unfused;
};

// Every reduction except plain products starts a region. The region grows forward over values that
// depend on its results and backward over producers, as long as its nodes are a cascade with an
// incremental form. Each form is certified. No region takes in a node of `separate`.
Regions find_regions(const NodeFacts& facts, bool certify,
                     const std::set<ir::NodeId>& separate = {});

}  // namespace redfuser::fuse
