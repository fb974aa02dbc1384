// Bodies that ONNX's schemas carry, and our own for operators that have neither a definition nor a
// schema body.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnx/functions/functions.h"

namespace redfuser::onnx {

// The float types of a body, where its literals and sums need others than its inputs have.
struct BodyTypes {
  bool promotes = false;       // floats that a node within wants alike take the widest type of them
  std::vector<DType> inputs;   // that a call casts to on the way in; Undefined: none
  std::vector<DType> results;  // and on the way out
};

// A body and the operator sets that its nodes are written for.
struct FunctionBody {
  std::shared_ptr<const ::onnx::FunctionProto> function;
  Opsets opsets;
  BodyTypes types = {};
};

// True if ONNX gives the operator a function body, or we do.
bool has_body(const ::onnx::NodeProto& node, const Opsets& opsets);
// True if the body is the same for every input type, so that it can be known without them.
bool has_fixed_body(const ::onnx::NodeProto& node, const Opsets& opsets);
// The body for this node, whose attributes are bound. `input_types` may be empty for a fixed body;
// unset types stand for absent inputs. Throws UserError, starting with `where`, when none fits; the
// function is null instead if the body is `optional`.
FunctionBody body_of(const ::onnx::NodeProto& node, const Opsets& opsets,
                     const std::vector<::onnx::TypeProto>& input_types, const std::string& where,
                     bool optional = false);

}  // namespace redfuser::onnx
