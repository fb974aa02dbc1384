// Nodes of a file as they are written to another one.
#pragma once

#include <string>

namespace onnx {
class ModelProto;
}

namespace redfuser::onnx {

// Gives ONNX's domain its short name, and embeds tensors of attributes and of subgraphs that are
// external data of the file `path`.
void normalise(::onnx::ModelProto& proto, const std::string& path);

}  // namespace redfuser::onnx
