// The fusion report behind `--explain`: accepted regions with their forms, and refused ones with
// reasons.
#pragma once

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
  int cases = 0;  // adversarial cases of the certificate
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
