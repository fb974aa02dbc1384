// SequenceProto and OptionalProto <-> Tensor.
#pragma once

#include <string>

#include "redfuser/tensor.h"

namespace onnx {
class OptionalProto;
class SequenceProto;
}  // namespace onnx

namespace redfuser::onnx {

// Throw UserError, starting with `where`, for elements that are not tensors, sequences or
// optionals, and for nesting beyond 8 levels.
Tensor to_sequence(const ::onnx::SequenceProto& proto, const std::string& where, int depth = 0);
Tensor to_optional(const ::onnx::OptionalProto& proto, const std::string& where, int depth = 0);

::onnx::SequenceProto sequence_proto(const std::string& name, const Tensor& sequence);
::onnx::OptionalProto optional_proto(const std::string& name, const Tensor& optional);

}  // namespace redfuser::onnx
