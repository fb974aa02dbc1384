// The main graph of a file as its user wrote it, for pictures.
#pragma once

#include <string>
#include <vector>

#include "onnx/import/import.h"

namespace redfuser::onnx {

struct FileNode {
  std::string op;                            // "MatMul", "com.microsoft.Gelu"
  std::string name;                          // as errors and reports call it
  std::vector<std::string> inputs, outputs;  // values; those of its subgraphs are left out
};

// In the file's order, by Node::source.
std::vector<FileNode> file_nodes(const LoadedModel& model);

}  // namespace redfuser::onnx
