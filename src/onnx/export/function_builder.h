// Builds a function and its call for each group of nodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/export/export.h"
#include "onnx/export/output_model.h"
#include "onnx/export/pruned_model.h"

namespace redfuser::onnx {

class FunctionBuilder {
 public:
  // `group[i]` is the region of node pruned.nodes[i], or -1. The arguments must outlive the
  // builder.
  FunctionBuilder(const LoadedModel& model, const PrunedModel& pruned,
                  const std::vector<ExportRegion>& regions, const std::vector<int>& group);

  // Adds the function of region `region`, whose nodes are `members` (indices in the file, in
  // order), and the node that calls it.
  ExportedRegion add(::onnx::ModelProto& proto, int region, const std::vector<int>& members);
  // Adds initializers, value types and operator sets for the nodes; drops local functions without
  // calls.
  void finish(OutputModel& output) const;

 private:
  std::string unique_name(const std::string& wanted);
  void add_constants(::onnx::FunctionProto& function, int region,
                     const std::vector<std::string>& inputs);
  bool is_adopted(const std::string& name, int region) const;

  const LoadedModel& model_;
  const PrunedModel& pruned_;
  const std::vector<ExportRegion>& regions_;
  std::unordered_map<std::string, std::set<int>> readers_;  // regions that read a value; -1: others
  std::set<std::string> names_;                             // of functions in our domain
};

}  // namespace redfuser::onnx
