// The nodes that a region's function may have.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "onnx/functions/functions.h"

namespace redfuser::onnx {

// Those of operators of the standard and of the model's own functions, without subgraphs: a
// function's body does not see outer names, and ONNX Runtime fails to infer the types of some of
// its own operators there.
class FunctionNodes {
 public:
  explicit FunctionNodes(const ::onnx::ModelProto& model);

  bool may_have(const ::onnx::NodeProto& node) const;

 private:
  const Opsets opsets_;
  std::set<std::pair<std::string, std::string>> local_;  // domain and name
};

}  // namespace redfuser::onnx
