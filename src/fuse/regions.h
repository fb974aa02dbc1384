// Fused regions: pieces of the graph that are cascades, found by dependence and grown by algebra.
#pragma once

#include <set>
#include <vector>

#include "cascade/certify/certificate.h"
#include "cascade/derive/derive.h"
#include "cascade/extract/extract.h"
#include "fuse/node_facts.h"

namespace redfuser {

struct Region {
  std::set<NodeId> owned;   // computed here only
  std::set<NodeId> shared;  // views and masks computed here and perhaps elsewhere too
  Extraction extraction;
  Derivation derivation;
  Certificate certificate;
  std::string region_class;  // attention, row, product, other

  // Values read from outside.
  std::set<ValueId> reads() const;
};

struct Regions {
  std::vector<Region> fused;
  std::vector<UnfusedReport> unfused;
};

// Every reduction that is no plain product starts a region; the region grows forward over values
// that depend on its results and backward over producers, as long as the piece stays a cascade
// with an incremental form. Each form is certified.
Regions find_regions(const GraphFacts& facts, bool certify);

}  // namespace redfuser
