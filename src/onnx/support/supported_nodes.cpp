#include "onnx/support/supported_nodes.h"

#include <onnx/onnx_pb.h>

#include "onnx/import/import.h"
#include "onnx/proto/model_file.h"
#include "onnx/support/node_sets.h"

namespace redfuser::onnx {

NodeSupport supported_nodes(std::string_view bytes, const std::string& name,
                            const NamedTensors& weights) {
  LoadedModel model;
  model.path = name;
  model.proto = read_model_proto(bytes, name);
  model.weights = std::make_shared<const NamedTensors>(weights);
  NodeSupport support;
  support.reasons = refused_nodes(model);
  support.sets = node_sets(model.proto->graph(), name, support.reasons);
  return support;
}

}  // namespace redfuser::onnx
