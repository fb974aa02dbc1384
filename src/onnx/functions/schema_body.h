// Function bodies from ONNX's schemas, and RedFuser's own for operators without one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnx/functions/functions.h"

namespace redfuser::onnx {

// Float types of a body that differ from those of its inputs, for literals and sums.
struct BodyTypes {
  bool promotes = false;       // float inputs of a node take the widest type of them
  std::vector<DType> inputs;   // to which a call casts its inputs; Undefined: no cast
  std::vector<DType> results;  // to which it casts its results
};

// A body and the operator sets of its nodes.
struct FunctionBody {
  std::shared_ptr<const ::onnx::FunctionProto> function;
  Opsets opsets;
  BodyTypes types = {};
};

// True if the operator has a body in ONNX's schemas or in RedFuser.
bool has_body(const ::onnx::NodeProto& node, const Opsets& opsets);
// True if the body does not depend on the input types.
bool has_fixed_body(const ::onnx::NodeProto& node, const Opsets& opsets);
// The body for this node, with its attributes bound. `input_types` may be empty for a fixed body;
// unset types denote absent inputs. If no body fits, throws UserError starting with `where`, or
// returns a null function if the body is `optional`.
FunctionBody body_of(const ::onnx::NodeProto& node, const Opsets& opsets,
                     const std::vector<::onnx::TypeProto>& input_types, const std::string& where,
                     bool optional = false);

}  // namespace redfuser::onnx
