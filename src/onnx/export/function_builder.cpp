#include "onnx/export/function_builder.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <unordered_set>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/functions/functions.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

constexpr int kOutside = -1;
constexpr int kRegionOpset = 1;

bool has_import(const ::onnx::ModelProto& proto, const std::string& domain) {
  return std::any_of(proto.opset_import().begin(), proto.opset_import().end(),
                     [&](const auto& import) { return import.domain() == domain; });
}

// Operators of the body need their domains' versions in the function as well.
void import_opsets(::onnx::FunctionProto& function, const Opsets& opsets) {
  std::set<std::string> domains;
  for (const auto& node : function.node()) domains.insert(normal_domain(node.domain()));
  for (const auto& domain : domains) {
    auto* import = function.add_opset_import();
    import->set_domain(domain);
    import->set_version(opsets.at(domain));
  }
}

void drop_uncalled_functions(::onnx::ModelProto& proto, const std::string& where) {
  const FunctionLibrary library(proto, where);
  std::unordered_set<const ::onnx::FunctionProto*> called;
  const std::function<void(const ::onnx::NodeProto&)> call = [&](const ::onnx::NodeProto& node) {
    const ::onnx::FunctionProto* function = library.find(node);
    if (function == nullptr || !called.insert(function).second) return;
    for (const auto& inner : function->node()) call(inner);
  };
  for (const auto& node : proto.graph().node()) call(node);
  google::protobuf::RepeatedPtrField<::onnx::FunctionProto> kept;
  for (const auto& function : proto.functions()) {
    if (called.count(&function)) *kept.Add() = function;
  }
  proto.mutable_functions()->Swap(&kept);
}

}  // namespace

FunctionBuilder::FunctionBuilder(const LoadedModel& model, const PrunedModel& pruned,
                                 const std::vector<ExportRegion>& regions,
                                 const std::vector<int>& group)
    : model_(model), pruned_(pruned), regions_(regions) {
  const ::onnx::GraphProto& main = model.proto->graph();
  for (size_t n = 0; n < pruned.nodes.size(); ++n) {
    for_each_input(main.node(pruned.nodes[n]),
                   [&](const std::string& name, bool) { readers_[name].insert(group[n]); });
  }
  for (const auto& output : main.output()) readers_[output.name()].insert(kOutside);
  for (const auto& function : model.proto->functions()) {
    if (function.domain() == kRegionDomain) names_.insert(function.name());
  }
}

std::string FunctionBuilder::unique_name(const std::string& wanted) {
  std::string base = wanted.empty() ? "region" : wanted;
  std::replace_if(
      base.begin(), base.end(), [](unsigned char c) { return !std::isalnum(c) && c != '_'; }, '_');
  std::string name = base;
  for (int copy = 2; !names_.insert(name).second; ++copy) name = fmt::format("{}_{}", base, copy);
  return name;
}

// A folded value that only this region reads is written inside it.
bool FunctionBuilder::is_adopted(const std::string& name, int region) const {
  if (!pruned_.folded.count(name)) return false;
  const auto& readers = readers_.at(name);
  return region != kOutside && readers.size() == 1 && *readers.begin() == region;
}

void FunctionBuilder::add_constants(::onnx::FunctionProto& function, int region,
                                    const std::vector<std::string>& inputs) {
  for (const auto& name : inputs) {
    if (!is_adopted(name, region)) continue;
    ::onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Constant");
    node.set_name(name);
    node.add_output(name);
    ::onnx::AttributeProto& value = *node.add_attribute();
    value.set_name("value");
    value.set_type(::onnx::AttributeProto::TENSOR);
    *value.mutable_t() = to_proto(name, pruned_.folded.at(name));
  }
}

ExportedRegion FunctionBuilder::add(::onnx::ModelProto& proto, int region,
                                    const std::vector<int>& members) {
  const ::onnx::GraphProto& main = model_.proto->graph();
  const ExportRegion& wanted = regions_[static_cast<size_t>(region)];
  ExportedRegion result{unique_name(wanted.name), wanted.region_class, {}};
  ::onnx::FunctionProto& function = *proto.add_functions();
  function.set_domain(kRegionDomain);
  function.set_name(result.name);
  function.set_doc_string(fmt::format("A fused region of class {}.", wanted.region_class));
  std::unordered_set<std::string> seen;
  std::vector<std::string> inputs;
  for (const int index : members) {
    for (const auto& name : main.node(index).input()) {
      if (!name.empty() && seen.insert(name).second) inputs.push_back(name);
    }
    for (const auto& name : main.node(index).output()) seen.insert(name);
  }
  add_constants(function, region, inputs);
  ::onnx::NodeProto& call = *proto.mutable_graph()->add_node();
  call.set_domain(kRegionDomain);
  call.set_op_type(result.name);
  call.set_name(result.name);
  for (const auto& name : inputs) {
    if (is_adopted(name, region)) continue;
    function.add_input(name);
    call.add_input(name);
  }
  for (const int index : members) {
    const ::onnx::NodeProto& node = main.node(index);
    *function.add_node() = node;
    if (node.op_type() != "Constant") result.nodes.push_back(node_name(node, index));
    for (const auto& name : node.output()) {
      const auto readers = readers_.find(name);
      if (name.empty() || readers == readers_.end()) continue;
      if (readers->second.size() == 1 && *readers->second.begin() == region) continue;
      function.add_output(name);
      call.add_output(name);
    }
  }
  import_opsets(function, opsets_of(*model_.proto));
  return result;
}

void FunctionBuilder::finish(OutputModel& output) const {
  const ::onnx::GraphProto& main = model_.proto->graph();
  ::onnx::GraphProto& graph = *output.proto.mutable_graph();
  std::unordered_set<std::string> used, produced;
  for (const auto& node : graph.node()) {
    for_each_input(node, [&](const std::string& name, bool) { used.insert(name); });
    produced.insert(node.output().begin(), node.output().end());
  }
  for (const auto& out : graph.output()) used.insert(out.name());
  // An input without its initializer would have to be given.
  for (const auto& input : graph.input()) used.insert(input.name());
  ExternalData external(model_.path);
  for (const auto& tensor : main.initializer()) {
    if (!used.count(tensor.name())) continue;
    output.initializers.emplace_back(tensor.name(),
                                     to_tensor(tensor, model_.proto, &external, model_.path));
  }
  for (const auto& [name, tensor] : pruned_.folded) {
    if (used.count(name)) output.initializers.emplace_back(name, tensor);
  }
  for (const auto& info : main.value_info()) {
    if (produced.count(info.name())) *graph.add_value_info() = info;
  }
  drop_uncalled_functions(output.proto, model_.path);
  if (output.proto.functions_size() != 0 && !has_import(output.proto, kRegionDomain)) {
    auto* import = output.proto.add_opset_import();
    import->set_domain(kRegionDomain);
    import->set_version(kRegionOpset);
  }
}

}  // namespace redfuser::onnx
