#include "onnx/import/row_lengths.h"

#include <onnx/onnx_pb.h>

namespace redfuser::onnx {
namespace {

constexpr int kAttentionBias = 10;  // input of GroupQueryAttention

}  // namespace

std::string node_of_row_lengths(const LoadedModel& model) {
  for (const ::onnx::NodeProto& node : model.proto->graph().node()) {
    if (node.op_type() != "GroupQueryAttention" || node.domain() != "com.microsoft") continue;
    if (node.input_size() > kAttentionBias && !node.input(kAttentionBias).empty()) continue;
    return node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  }
  return "";
}

}  // namespace redfuser::onnx
