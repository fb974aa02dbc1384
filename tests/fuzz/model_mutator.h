// Edits of an ONNX model that keep it a message: fields set, copied, removed and swapped, names
// taken from the model itself, operators from ONNX's schemas; nodes made wide, and chains whose
// nodes each use their operand twice.
#pragma once

#include <onnx/onnx_pb.h>

#include "random.h"

namespace redfuser {

// Applies one to four edits to random messages inside the model.
void mutate(::onnx::ModelProto& model, Random& random);

// Puts a message of `from` in the place of one of the same type in `to`.
void cross_over(::onnx::ModelProto& to, const ::onnx::ModelProto& from, Random& random);

}  // namespace redfuser
