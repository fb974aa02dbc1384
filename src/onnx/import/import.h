// From an ONNX file to a Graph of primitive operators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "redfuser/redfuser.h"

namespace onnx {
class ModelProto;
}

namespace redfuser::onnx {

// A model as it was read. Immutable; constants of `graph` point into `proto` and into mapped files.
struct LoadedModel {
  std::string path;
  std::shared_ptr<const ::onnx::ModelProto> proto;  // the file as written, for export
  // Local functions inlined and composite operators expanded. Node::source is the index of the
  // user's node in the file's main graph; values of the main graph keep their names.
  ir::Graph graph;
  // Not empty: why the graph cannot be made before a run's values are known. It is empty then, and
  // evaluate_model does the work of a run.
  std::string needs_values;
  std::vector<ValueInfo> inputs, outputs;
  std::map<std::string, int> operator_counts;  // of the file's main graph
};

// Reads, checks and expands a model. Throws UserError, one line that names the file and where there
// is one the node, for whatever is wrong with it. Everything that the model asks for in nodes,
// nesting and sizes is bounded.
//
// An input that has an initializer is a constant. Inputs' open dimensions are symbols.
std::shared_ptr<const LoadedModel> load_model(const std::string& path);
// The same for a model in ONNX's text syntax.
std::shared_ptr<const LoadedModel> parse_model(const std::string& text);

// The same for a model in memory; `path` names it in errors and is where external data is looked
// for.
std::shared_ptr<const LoadedModel> import_model(std::shared_ptr<const ::onnx::ModelProto> proto,
                                                const std::string& path);

// Runs the model node by node. `evaluate` computes the newest node of a graph, whose inputs are
// constants, and makes its outputs constants. Throws UserError, one line that names the file.
NamedTensors evaluate_model(const LoadedModel& model, const NamedTensors& inputs,
                            const std::function<void(ir::Graph&, ir::NodeId)>& evaluate);

// Operators of the main graph: "MatMul" -> 16, "com.microsoft.Gelu" -> 2.
std::map<std::string, int> operator_counts(const ::onnx::ModelProto& model);

}  // namespace redfuser::onnx
