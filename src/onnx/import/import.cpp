#include "onnx/import/import.h"

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "onnx/functions/functions.h"
#include "onnx/import/importer.h"
#include "onnx/import/interpreter.h"
#include "onnx/proto/caller_values.h"
#include "onnx/proto/described_values.h"
#include "onnx/proto/model_file.h"
#include "onnx/proto/value_types.h"

namespace redfuser::onnx {
namespace {

void check_ir_version(const ::onnx::ModelProto& model, const std::string& path) {
  // Version 14 adds floats of 6 bits alone, which their tensors' types name.
  constexpr int64_t kNewest = 14, newest = std::max<int64_t>(kNewest, ::onnx::Version::IR_VERSION);
  const int64_t version = model.ir_version();
  if (version >= 1 && version <= newest) return;
  user_error("{}: IR version {} is not supported; versions 1 to {} are", path, version, newest);
}

void check_opset(const ::onnx::ModelProto& model, const std::string& path) {
  const Opsets opsets = opsets_of(model);
  const auto main = opsets.find("");
  if (main == opsets.end()) {
    const auto& nodes = model.graph().node();
    const bool none = std::none_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return normal_domain(node.domain()).empty();
    });
    if (none) return;
    user_error("{}: does not say which opset of ai.onnx it is written for", path);
  }
  if (main->second < kOldestOpset || main->second > kNewestOpset) {
    user_error("{}: opset {} of ai.onnx is not supported; opsets {} to {} are", path, main->second,
               kOldestOpset, kNewestOpset);
  }
}

// Names in a damaged file can hold anything; a message stays one printable line.
std::string printable(const std::string& message, const std::string& path) {
  constexpr size_t kLongest = 2000;
  std::string line = message.starts_with(path) ? message : fmt::format("{}: {}", path, message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (line.size() > kLongest) line = line.substr(0, kLongest) + " ...";
  return line;
}

template <typename Body>
auto with_path(const LoadedModel& model, const Body& body) {
  try {
    return body();
  } catch (const NeedsValues& error) {
    throw NeedsValues(printable(error.what(), model.path));
  } catch (const UnsupportedOperator& error) {
    throw UnsupportedOperator(printable(error.what(), model.path));
  } catch (const UserError& error) {
    throw UserError(printable(error.what(), model.path));
  }
}

void import_graph(LoadedModel& model) {
  model.graph = with_path(model, [&] {
    check_ir_version(*model.proto, model.path);
    check_opset(*model.proto, model.path);
    Importer importer(model.proto, model.path, model.weights);
    ir::Graph graph = importer.run();
    model.calls = importer.take_calls();
    return graph;
  });
  for (const ir::ValueId id : model.graph.inputs) {
    model.inputs.push_back(value_info(model.graph, id));
  }
  for (const ir::ValueId id : model.graph.outputs) {
    model.outputs.push_back(value_info(model.graph, id));
  }
}

// Inputs and outputs as the file declares them.
void declare(LoadedModel& model) {
  const ::onnx::GraphProto& main = model.proto->graph();
  for (const ::onnx::ValueInfoProto* input : free_inputs(main, model.weights.get())) {
    model.inputs.push_back(declared_info(*input));
  }
  for (const auto& output : main.output()) model.outputs.push_back(declared_info(output));
  model.graph.pool = std::make_shared<ir::ExprPool>();
  model.graph.name = main.name();
}

}  // namespace

std::map<std::string, int> operator_counts(const ::onnx::ModelProto& model) {
  std::map<std::string, int> counts;
  for (const auto& node : model.graph().node()) {
    ++counts[qualified_name(node.domain(), node.op_type())];
  }
  return counts;
}

std::shared_ptr<const LoadedModel> import_model(std::shared_ptr<const ::onnx::ModelProto> proto,
                                                const std::string& path,
                                                UnsupportedOperators unsupported,
                                                std::shared_ptr<const NamedTensors> weights) {
  auto model = std::make_shared<LoadedModel>();
  model->path = path;
  model->proto = std::move(proto);
  model->weights = std::move(weights);
  try {
    import_graph(*model);
  } catch (const NeedsValues& reason) {
    model->needs_values = reason.what();
    declare(*model);
  } catch (const UnsupportedOperator& reason) {
    if (unsupported == UnsupportedOperators::Refused) throw;
    model->needs_values = reason.what();
    model->graph.pool = std::make_shared<ir::ExprPool>();
  }
  describe_values(model->proto->graph(), model->inputs, model->outputs);
  for (const ::onnx::ValueInfoProto* input : overridable_inputs(*model->proto)) {
    model->overridable.push_back(declared_info(*input));
  }
  model->operator_counts = operator_counts(*model->proto);
  return model;
}

std::shared_ptr<const LoadedModel> with_inputs(const LoadedModel& model,
                                               const std::vector<std::string>& names) {
  NamedTensors weights = model.weights == nullptr ? NamedTensors() : *model.weights;
  for (const std::string& name : names) {
    const auto is_named = [&](const ValueInfo& info) { return info.name == name; };
    if (std::none_of(model.overridable.begin(), model.overridable.end(), is_named)) {
      user_error("{}: \"{}\" is no input with an initializer that a run may give", model.path,
                 name);
    }
    weights[name] = Tensor();
  }
  return import_model(model.proto, model.path, UnsupportedOperators::Refused,
                      std::make_shared<const NamedTensors>(std::move(weights)));
}

static constexpr int64_t kMostDecidingElements = 64;

// Whether a size of the graph does not follow from its inputs' sizes.
static bool has_sizes_of_values(const ir::Graph& graph) {
  std::set<ir::Expr> known;
  for (const ir::ValueId id : graph.inputs) {
    for (const ir::Expr size : graph.values[static_cast<size_t>(id)].shape) known.insert(size);
  }
  bool found = false;
  for (const ir::Value& value : graph.values) {
    for (const ir::Expr size : value.shape) {
      visit(size, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Symbol && known.count(e) == 0; });
    }
  }
  return found;
}

std::vector<std::string> deciding_inputs(const LoadedModel& model) {
  std::vector<std::string> names;
  if (model.run_time_structure().empty() && !has_sizes_of_values(model.graph)) return names;
  for (const ValueInfo& info : model.inputs) {
    const bool number = is_integer(info.dtype) || info.dtype == DType::Bool;
    if (!number || info.any_shape || info.dims.size() > 1) continue;
    if (!info.dims.empty() && info.dims[0].size > kMostDecidingElements) continue;
    names.push_back(info.name);
  }
  return names;
}

std::vector<std::string> short_inputs(std::vector<std::string> names, const NamedTensors& inputs) {
  std::erase_if(names, [&](const std::string& name) {
    const auto given = inputs.find(name);
    if (given == inputs.end()) user_error("input \"{}\" is missing", name);
    return given->second.size() > kMostDecidingElements;
  });
  return names;
}

std::shared_ptr<const LoadedModel> with_values(const LoadedModel& model,
                                               const NamedTensors& values) {
  NamedTensors weights = model.weights == nullptr ? NamedTensors() : *model.weights;
  for (const auto& [name, tensor] : values) {
    const auto is_named = [&](const ValueInfo& info) { return info.name == name; };
    if (std::none_of(model.inputs.begin(), model.inputs.end(), is_named)) {
      user_error("{}: the model has no input \"{}\"", model.path, name);
    }
    weights[name] = tensor;
  }
  return import_model(model.proto, model.path, UnsupportedOperators::Refused,
                      std::make_shared<const NamedTensors>(std::move(weights)));
}

std::vector<Tensor> ordered_inputs(const LoadedModel& model, const NamedTensors& inputs) {
  const ::onnx::GraphProto& main = model.proto->graph();
  std::vector<std::string> names;
  std::vector<Tensor> ordered;
  for (const ::onnx::ValueInfoProto* input : free_inputs(main, model.weights.get())) {
    names.push_back(input->name());
    const auto given = inputs.find(input->name());
    if (given == inputs.end() || !given->second.defined()) {
      user_error("input \"{}\" is missing", input->name());
    }
    check_given(given->second, *input);
    ordered.push_back(given->second);
  }
  for (const auto& [name, tensor] : inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    user_error("the model has no input \"{}\"", name);
  }
  return ordered;
}

NamedTensors evaluate_model(const LoadedModel& model, const NamedTensors& inputs,
                            const std::function<void(ir::Graph&, ir::NodeId)>& evaluate) {
  const std::vector<Tensor> given = with_path(model, [&] { return ordered_inputs(model, inputs); });
  const std::vector<Tensor> outputs = evaluate_body(model, nullptr, given, evaluate);
  NamedTensors named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    named[model.proto->graph().output(static_cast<int>(i)).name()] = outputs[i];
  }
  return named;
}

std::shared_ptr<const LoadedModel> import_body(const LoadedModel& model,
                                               std::shared_ptr<const Subgraph> body,
                                               std::span<const BodyInput> inputs) {
  auto own = std::make_shared<LoadedModel>();
  own->path = model.path;
  own->proto = model.proto;
  own->weights = model.weights;
  try {
    own->graph = with_path(*own, [&] {
      Importer importer(own->proto, own->path, own->weights);
      ir::Graph graph = body == nullptr ? importer.run(inputs) : importer.run(*body, inputs);
      own->calls = importer.take_calls();
      return graph;
    });
  } catch (const NeedsValues& reason) {
    own->needs_values = reason.what();
    own->graph.pool = std::make_shared<ir::ExprPool>();
  }
  return own;
}

std::vector<Tensor> evaluate_body(const LoadedModel& model, const Subgraph* body,
                                  std::span<const Tensor> inputs,
                                  const std::function<void(ir::Graph&, ir::NodeId)>& evaluate) {
  return with_path(model, [&] {
    Interpreter interpreter(model.proto, model.path, model.weights, evaluate);
    return body == nullptr ? interpreter.run(inputs) : interpreter.run(*body, inputs);
  });
}

std::string LoadedModel::run_time_structure() const {
  if (!needs_values.empty() || calls.empty()) return needs_values;
  return calls.front()->reason;
}

// The model of a file that was just read, with what the caller gives.
static std::shared_ptr<const LoadedModel> import_with(std::shared_ptr<::onnx::ModelProto> proto,
                                                      const std::string& path,
                                                      UnsupportedOperators unsupported,
                                                      const LoadOptions& options) {
  NamedTensors weights = given_weights(*proto, path, options);
  set_sizes(*proto, path, options);
  if (weights.empty()) return import_model(std::move(proto), path, unsupported);
  return import_model(std::move(proto), path, unsupported,
                      std::make_shared<const NamedTensors>(std::move(weights)));
}

std::shared_ptr<const LoadedModel> load_model(const std::string& path,
                                              UnsupportedOperators unsupported,
                                              const LoadOptions& options) {
  return import_with(read_model_proto(path), path, unsupported, options);
}

std::shared_ptr<const LoadedModel> load_model(std::string_view bytes, const std::string& name,
                                              const LoadOptions& options) {
  return import_with(read_model_proto(bytes, name), name, UnsupportedOperators::Refused, options);
}

std::vector<std::string> refused_nodes(const LoadedModel& model) {
  return with_path(model, [&] {
    check_ir_version(*model.proto, model.path);
    check_opset(*model.proto, model.path);
    return Importer(model.proto, model.path, model.weights).refusals();
  });
}

std::shared_ptr<const LoadedModel> parse_model(const std::string& text) {
  auto proto = std::make_shared<::onnx::ModelProto>();
  const auto status = ::onnx::OnnxParser::Parse(*proto, text.c_str());
  if (!status.IsOK()) user_error("the text is no ONNX model: {}", status.ErrorMessage());
  return import_model(std::move(proto), "text");
}

}  // namespace redfuser::onnx
