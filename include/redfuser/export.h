// Writing a model, or a picture of it, back to a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser {

enum class Emit {
  Function,  // the file's own nodes, each fused region as a call of a function in ai.redfuser
  Inline,    // the file's own nodes without any function
  Standard,  // the primitive operators of the ONNX standard that RedFuser works on
};

struct SaveOptions {
  Emit emit = Emit::Function;
  // Weights of more bytes than this, together, are written to a file beside the model
  // ("<file>.data").
  int64_t external_data_threshold = int64_t{1} << 30;
};

struct SaveResult {
  std::map<std::string, int> operators_before, operators_after;  // of the two files' main graphs
  std::vector<std::string> notes;  // nodes that were left out of a function, and why
  std::string kept_because;        // if not empty, why the file's nodes were written as they are
};

// Writes `model`, optimised, with the fused regions of `program` (null: none) to `path`. The output
// bytes are deterministic; a file is replaced only when the new one is whole. A model whose graph
// depends on values of a run, or that has operators that are not supported, is written as it is, in
// every form; only its functions are inlined but for Emit::Function.
SaveResult save(const Model& model, const Program* program, const SaveOptions& options,
                const std::string& path);

// The bytes that save() would write, weights included. UserError beyond protobuf's 2 GiB.
SaveResult save_to_bytes(const Model& model, const Program* program, Emit emit, std::string& bytes);

// The optimised graph in the DOT language, each fused region outlined and labelled by its class.
std::string to_dot(const Program& program);

// Draws to_dot(program). A path that ends in .dot gets the text itself, any other an SVG made by
// Graphviz's `dot`. UserError if `dot` is not installed.
void save_picture(const Program& program, const std::string& path);

// The SVG that save_picture writes.
std::string picture(const Program& program);

}  // namespace redfuser
