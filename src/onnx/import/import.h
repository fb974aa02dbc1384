// From an ONNX file to a Graph of primitive operators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "onnx/import/control_call.h"
#include "redfuser/redfuser.h"

namespace onnx {
class ModelProto;
}

namespace redfuser::onnx {

// An imported model. Immutable; constants of `graph` point into `proto` and into mapped files.
struct LoadedModel {
  std::string path;
  std::shared_ptr<const ::onnx::ModelProto> proto;  // the file as written, for export
  // Of the caller, by initializer, in place of its data; undefined: a run gives it, as an input. By
  // input, the value that it has in every run. May be null.
  std::shared_ptr<const NamedTensors> weights;
  // Local functions inlined and composite operators expanded. Node::source is the index of the
  // user's node in the file's main graph; values of the main graph keep their names.
  ir::Graph graph;
  // If not empty, the reason why the graph depends on run-time values: `graph` is then empty, and
  // evaluate_model runs the model.
  std::string needs_values;
  // Control flow that only a run resolves, by call_number of its node.
  std::vector<std::shared_ptr<const ControlCall>> calls;
  std::vector<ValueInfo> inputs, outputs;
  // Inputs with an initializer that a run may give, as the file declares them (with_inputs).
  std::vector<ValueInfo> overridable;
  std::map<std::string, int> operator_counts;  // of the file's main graph

  // If not empty, the reason why one graph of the file's nodes does not serve every run:
  // needs_values, or the first call.
  std::string run_time_structure() const;
};

// Operators that RedFuser does not have: an error, or the model's reason to need values, so that it
// can be written and not run.
enum class UnsupportedOperators { Refused, Kept };

// Reads, checks and expands a model. Throws UserError, one line with the file and, if there is one,
// the node, for an invalid model. Nodes, nesting and sizes are bounded.
//
// An input that has an initializer is that constant (with_inputs). Inputs' open dimensions are
// symbols.
std::shared_ptr<const LoadedModel> load_model(
    const std::string& path, UnsupportedOperators unsupported = UnsupportedOperators::Refused,
    const LoadOptions& options = {});
// The same for a file's bytes, which are copied where needed.
std::shared_ptr<const LoadedModel> load_model(std::string_view bytes, const std::string& name,
                                              const LoadOptions& options = {});
// The same for a model in ONNX's text syntax.
std::shared_ptr<const LoadedModel> parse_model(const std::string& text);

// The same for a model in memory; `path` names it in errors, and its folder has the external data.
std::shared_ptr<const LoadedModel> import_model(
    std::shared_ptr<const ::onnx::ModelProto> proto, const std::string& path,
    UnsupportedOperators unsupported = UnsupportedOperators::Refused,
    std::shared_ptr<const NamedTensors> weights = nullptr);

// The model with these initializers, which are overridable, as inputs that a run gives. UserError
// for other names.
std::shared_ptr<const LoadedModel> with_inputs(const LoadedModel& model,
                                               const std::vector<std::string>& names);

// The inputs whose values may decide the structure of a model or sizes of its values: integers and
// truth values, scalars or short lists. In the order of its inputs; empty where one graph serves
// every run and the sizes of its inputs give all others.
std::vector<std::string> deciding_inputs(const LoadedModel& model);
// Those of the names that are short among a run's inputs. UserError for one that is missing.
std::vector<std::string> short_inputs(std::vector<std::string> names, const NamedTensors& inputs);

// The model for runs in which these inputs have these values: they are constants. UserError for
// other names and types.
std::shared_ptr<const LoadedModel> with_values(const LoadedModel& model,
                                               const NamedTensors& values);

// By node of the main graph, the reason why it cannot be imported; empty where it can. `model` has
// a path, a proto and weights. Throws UserError where the file as a whole is refused.
std::vector<std::string> refused_nodes(const LoadedModel& model);

// An input of a program for given types and sizes.
struct BodyInput {
  DType dtype = DType::Undefined;
  Dims dims;         // -1: open
  Tensor constant;   // if defined, the input's only value: the program has no such input
  ListFormRef list;  // of lists
};

// The program of a subgraph of `model`, or of its main graph (`body` is null), for inputs of these
// types and sizes alone: it may have a graph where the model for all inputs needs values. `graph`
// has the inputs but for constants and the outputs, both in order. A subgraph's formals stand
// before its captured values, and several of its outputs may be one value. Throws UserError as
// import_model does.
std::shared_ptr<const LoadedModel> import_body(const LoadedModel& model,
                                               std::shared_ptr<const Subgraph> body,
                                               std::span<const BodyInput> inputs);

// The inputs of the main graph in its order, those of `model.inputs`. Throws UserError for
// one that is missing, unknown, or of another type than the file declares.
std::vector<Tensor> ordered_inputs(const LoadedModel& model, const NamedTensors& inputs);

// Runs the model node by node. `evaluate` computes the last node of a graph, whose inputs are
// constants, and makes its outputs constants. Throws UserError, one line that names the file.
NamedTensors evaluate_model(const LoadedModel& model, const NamedTensors& inputs,
                            const std::function<void(ir::Graph&, ir::NodeId)>& evaluate);

// The same for a subgraph of `model`, or its main graph where `body` is null: the outputs, in
// order. `inputs` are those of import_body.
std::vector<Tensor> evaluate_body(const LoadedModel& model, const Subgraph* body,
                                  std::span<const Tensor> inputs,
                                  const std::function<void(ir::Graph&, ir::NodeId)>& evaluate);

// Operators of the main graph: "MatMul" -> 16, "com.microsoft.Gelu" -> 2.
std::map<std::string, int> operator_counts(const ::onnx::ModelProto& model);

}  // namespace redfuser::onnx
