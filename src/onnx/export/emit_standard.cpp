#include "onnx/export/emit_standard.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "onnx/check/node_check.h"
#include "onnx/functions/functions.h"
#include "onnx/proto/tensor_proto.h"
#include "onnx/proto/value_types.h"

namespace redfuser::onnx {
namespace {

constexpr int kIrVersion = 8;

struct AttributeWriter {
  ::onnx::AttributeProto& out;

  void operator()(int64_t value) const {
    out.set_type(::onnx::AttributeProto::INT);
    out.set_i(value);
  }
  void operator()(float value) const {
    out.set_type(::onnx::AttributeProto::FLOAT);
    out.set_f(value);
  }
  void operator()(const std::string& value) const {
    out.set_type(::onnx::AttributeProto::STRING);
    out.set_s(value);
  }
  void operator()(const Tensor& value) const {
    out.set_type(::onnx::AttributeProto::TENSOR);
    *out.mutable_t() = to_proto("", value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    out.set_type(::onnx::AttributeProto::INTS);
    out.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    out.set_type(::onnx::AttributeProto::FLOATS);
    out.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    out.set_type(::onnx::AttributeProto::STRINGS);
    for (const auto& value : values) out.add_strings(value);
  }
};

class StandardWriter {
 public:
  StandardWriter(const LoadedModel& model, const ir::Graph& graph) : model_(model), graph_(graph) {}

  OutputModel run() {
    choose_opsets();
    ::onnx::GraphProto& out = *output_.proto.mutable_graph();
    out.set_name(graph_.name.empty() ? "graph" : graph_.name);
    const int64_t newest = ::onnx::Version::IR_VERSION;  // that the checker knows
    output_.proto.set_ir_version(
        std::clamp<int64_t>(model_.proto->ir_version(), kIrVersion, newest));
    for (const ir::Value& value : graph_.values) names_.insert(value.name);
    for (const ir::ValueId id : graph_.inputs) describe(*out.add_input(), id, name_of(id));
    for (const ir::Node& node : graph_.nodes) {
      if (!is_folded(node)) write(node);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) write_output(i);
    return std::move(output_);
  }

 private:
  const std::string& name_of(ir::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)].name;
  }

  void describe(::onnx::ValueInfoProto& info, ir::ValueId id, const std::string& name) const {
    info.set_name(name);
    *info.mutable_type() = type_of(graph_, id);
  }

  // All nodes of a domain use one version: the newest of their versions.
  void choose_opsets() {
    opsets_[""] = opsets_of(*model_.proto).at("");
    for (const ir::Node& node : graph_.nodes) {
      int& version = opsets_[node.domain];
      version = std::max(version, node.opset);
    }
    for (const auto& [domain, version] : opsets_) {
      auto* import = output_.proto.add_opset_import();
      import->set_domain(domain);
      import->set_version(version);
    }
  }

  std::string unique(const std::string& wanted, std::unordered_set<std::string>& taken) {
    std::string name = wanted;
    for (int copy = 2; !taken.insert(name).second; ++copy)
      name = fmt::format("{}_{}", wanted, copy);
    return name;
  }

  // A node is not needed if inference knows its result.
  bool is_folded(const ir::Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) {
      return id == ir::kAbsent || graph_.values[static_cast<size_t>(id)].is_constant();
    });
  }

  void use(ir::ValueId id) {
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    if (!value.is_constant()) return;
    if (value.producer >= 0 && !is_folded(graph_.nodes[static_cast<size_t>(value.producer)]))
      return;
    if (!written_.insert(value.name).second) return;
    output_.initializers.emplace_back(value.name, value.constant);
  }

  void write(const ir::Node& node) {
    ::onnx::NodeProto out;
    out.set_op_type(node.op);
    out.set_domain(node.domain);
    out.set_name(unique(node.name, node_names_));
    for (const ir::ValueId id : node.inputs) {
      out.add_input(id == ir::kAbsent ? "" : name_of(id));
      if (id != ir::kAbsent) use(id);
    }
    for (const ir::ValueId id : node.outputs) out.add_output(id == ir::kAbsent ? "" : name_of(id));
    for (const auto& [name, attribute] : node.attributes) {
      ::onnx::AttributeProto& written = *out.add_attribute();
      written.set_name(name);
      std::visit(AttributeWriter{written}, attribute);
    }
    const int version = opsets_.at(node.domain);
    if (node.opset != version) upgrade(out, node, version);
    *output_.proto.mutable_graph()->add_node() = std::move(out);
  }

  // Since opset 13 (18 for most reductions) `axes` is an input instead of an attribute.
  void upgrade(::onnx::NodeProto& out, const ir::Node& node, int version) {
    const auto* registry = ::onnx::OpSchemaRegistry::Instance();
    const ::onnx::OpSchema* schema = registry->GetSchema(node.op, version, node.domain);
    if (schema == registry->GetSchema(node.op, node.opset, node.domain)) return;
    const auto axes = node.attributes.find("axes");
    if (schema && axes != node.attributes.end() && !schema->attributes().count("axes")) {
      auto& attributes = *out.mutable_attribute();
      for (int i = attributes.size() - 1; i >= 0; --i) {
        if (attributes[i].name() == "axes") attributes.DeleteSubrange(i, 1);
      }
      const auto& values = std::get<std::vector<int64_t>>(axes->second);
      Tensor tensor(DType::Int64, {static_cast<int64_t>(values.size())});
      std::copy(values.begin(), values.end(), tensor.as<int64_t>());
      const std::string name = unique(out.name() + "/axes", names_);
      output_.initializers.emplace_back(name, tensor);
      out.add_input(name);
    }
    check_node(out, node.domain, version,
               fmt::format("[{}] node \"{}\": cannot be written for opset {}", node.op, node.name,
                           version));
  }

  // Passes may have replaced an output's value; the output keeps its name.
  void write_output(size_t index) {
    const ir::ValueId id = graph_.outputs[index];
    const std::string& name = model_.outputs[index].name;
    ::onnx::GraphProto& out = *output_.proto.mutable_graph();
    use(id);
    if (name_of(id) != name) {
      ::onnx::NodeProto& node = *out.add_node();
      node.set_op_type("Identity");
      node.set_name(unique(name, node_names_));
      node.add_input(name_of(id));
      node.add_output(name);
    }
    describe(*out.add_output(), id, name);
  }

  const LoadedModel& model_;
  const ir::Graph& graph_;
  OutputModel output_;
  std::map<std::string, int> opsets_;
  std::unordered_set<std::string> names_, node_names_, written_;
};

}  // namespace

OutputModel emit_standard(const LoadedModel& model, const ir::Graph& graph) {
  return StandardWriter(model, graph).run();
}

}  // namespace redfuser::onnx
