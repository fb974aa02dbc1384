// Attributes of ONNX Runtime's nodes in an ONNX file's form.
#pragma once

#include "ep/api.h"

namespace onnx {
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace redfuser::ep {

// Adds the attributes but for subgraphs, and for values that ONNX defines for attributes that are
// left out: ONNX Runtime fills them in, and so gives an RNN of one direction the two activations of
// two. One that the interface cannot read gets no type, so that
// RedFuser refuses its node.
void write_attributes(const Api& api, const OrtNode& node, ::onnx::NodeProto& proto);

// Type, sizes and, where `with_data`, elements of a tensor.
void write_tensor(const Api& api, const OrtValue& value, bool with_data,
                  ::onnx::TensorProto& proto);

}  // namespace redfuser::ep
