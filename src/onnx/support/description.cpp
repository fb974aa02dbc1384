#include "redfuser/description.h"

#include <onnx/onnx_pb.h>

#include "onnx/import/import.h"

namespace redfuser {

ModelDescription describe(const Model& model) {
  const ::onnx::ModelProto& proto = *model.handle()->proto;
  ModelDescription description;
  description.producer_name = proto.producer_name();
  description.producer_version = proto.producer_version();
  description.domain = proto.domain();
  description.doc_string = proto.doc_string();
  description.graph_name = proto.graph().name();
  description.graph_doc_string = proto.graph().doc_string();
  description.model_version = proto.model_version();
  for (const auto& entry : proto.metadata_props()) {
    description.metadata[entry.key()] = entry.value();
  }
  return description;
}

}  // namespace redfuser
