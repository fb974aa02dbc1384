#include "onnx/import.h"

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/functions.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"
#include "onnx/value_types.h"

namespace redfuser {
namespace {

constexpr int kOldestOpset = 7, kNewestOpset = 27;

void check_opset(const onnx::ModelProto& model, const std::string& path) {
  const Opsets opsets = opsets_of(model);
  const auto main = opsets.find("");
  if (main == opsets.end()) {
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

Graph import_graph(const LoadedModel& model) {
  try {
    check_opset(*model.proto, model.path);
    return Importer(model.proto, model.path).run();
  } catch (const UserError& error) {
    throw UserError(printable(error.what(), model.path));
  }
}

}  // namespace

std::map<std::string, int> operator_counts(const onnx::ModelProto& model) {
  std::map<std::string, int> counts;
  for (const auto& node : model.graph().node()) {
    ++counts[qualified_name(node.domain(), node.op_type())];
  }
  return counts;
}

std::shared_ptr<const LoadedModel> import_model(std::shared_ptr<const onnx::ModelProto> proto,
                                                const std::string& path) {
  auto model = std::make_shared<LoadedModel>();
  model->path = path;
  model->proto = std::move(proto);
  model->graph = import_graph(*model);
  for (const ValueId id : model->graph.inputs) {
    model->inputs.push_back(value_info(model->graph, id));
  }
  for (const ValueId id : model->graph.outputs) {
    model->outputs.push_back(value_info(model->graph, id));
  }
  model->operator_counts = operator_counts(*model->proto);
  return model;
}

std::shared_ptr<const LoadedModel> load_model(const std::string& path) {
  return import_model(read_model_proto(path), path);
}

std::shared_ptr<const LoadedModel> parse_model(const std::string& text) {
  auto proto = std::make_shared<onnx::ModelProto>();
  const auto status = onnx::OnnxParser::Parse(*proto, text.c_str());
  if (!status.IsOK()) user_error("the text is no ONNX model: {}", status.ErrorMessage());
  return import_model(std::move(proto), "text");
}

}  // namespace redfuser
