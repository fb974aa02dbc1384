// What a file says of a model's inputs and outputs beside their types and sizes.
#pragma once

#include <vector>

#include "redfuser/redfuser.h"

namespace onnx {
class GraphProto;
}

namespace redfuser::onnx {

// Adds the names that the file gives to open dimensions, and to columns (ai.onnx.ml.ZipMap). An
// open dimension of an output that the file does not name has the name of an input's dimension
// where the model computes that very size. `inputs` and `outputs` are found in `graph` by their
// names.
void describe_values(const ::onnx::GraphProto& graph, std::vector<ValueInfo>& inputs,
                     std::vector<ValueInfo>& outputs);

}  // namespace redfuser::onnx
