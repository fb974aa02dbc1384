// The fusion report behind `--explain`: accepted regions with their forms, and refused ones with
// reasons.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace redfuser::cascade {

struct StageReport {
  std::string reduce, form, F, G, H, rho;
};

struct FusedReport {
  int id = 0;
  std::string region_class;  // attention, row, product, chain, other
  std::vector<std::string> nodes;
  std::vector<int> sources;  // indices of these nodes in the file's main graph
  std::vector<StageReport> stages;
  int cases = 0;        // adversarial cases of the certificate
  int64_t hidden = 0;   // elements that these were folded without as well
  std::string visible;  // where elements are not hidden; empty where none is
  double max_error = 0;
};

struct UnfusedReport {
  std::vector<std::string> nodes;
  std::string reason;
  std::string blame;  // the user's node
};

struct Report {
  std::vector<FusedReport> fused;
  std::vector<UnfusedReport> unfused;
  std::map<std::string, int> ops_before, ops_after;
};

}  // namespace redfuser::cascade
