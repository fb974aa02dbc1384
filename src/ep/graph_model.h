// A graph of ONNX Runtime as a model for RedFuser.
#pragma once

#include <string>
#include <vector>

#include "ep/api.h"
#include "redfuser/redfuser.h"

namespace redfuser::ep {

// Where weights stay. Those in files beside the model are mapped by RedFuser in either case.
enum class Weights {
  Borrowed,  // where ONNX Runtime has them, as long as its graph exists
  Owned,     // in memory of the model: ONNX Runtime frees its own
};

// Parameters of redfuser::Model::from_bytes.
struct GraphModel {
  std::string bytes;
  std::string name;  // the path of the model's file, or "model"
  NamedTensors weights;
};

// Writes these nodes of a graph, or of a part of one, in their order. Values that none of them
// computes are weights, if they are constant, or inputs; the outputs are those of the nodes that
// are in `outputs`.
GraphModel model_of(const Api& api, const OrtGraph& graph, const std::vector<const OrtNode*>& nodes,
                    const std::vector<std::string>& outputs, Weights weights);

}  // namespace redfuser::ep
