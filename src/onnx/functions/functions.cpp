#include "onnx/functions/functions.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace redfuser::onnx {
namespace {

template <typename Proto>
Opsets read_opsets(const Proto& proto) {
  Opsets opsets;
  for (const auto& import : proto.opset_import()) {
    using Limits = std::numeric_limits<int>;
    const auto version =
        static_cast<int>(std::clamp<int64_t>(import.version(), Limits::min(), Limits::max()));
    int& known = opsets.emplace(normal_domain(import.domain()), version).first->second;
    known = std::max(known, version);
  }
  return opsets;
}

}  // namespace

bool is_control_flow(const std::string& op) {
  return std::find(std::begin(kControlFlow), std::end(kControlFlow), op) != std::end(kControlFlow);
}

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string qualified_name(const std::string& domain, const std::string& op) {
  return normal_domain(domain).empty() ? op : domain + "." + op;
}

Opsets opsets_of(const ::onnx::ModelProto& model) { return read_opsets(model); }
Opsets opsets_of(const ::onnx::FunctionProto& function) { return read_opsets(function); }

FunctionLibrary::FunctionLibrary(const ::onnx::ModelProto& model, const std::string& where) {
  for (const auto& function : model.functions()) {
    const Key key{normal_domain(function.domain()), function.name(), function.overload()};
    if (!functions_.emplace(key, &function).second) {
      user_error("{}: the function {} is defined twice", where,
                 qualified_name(function.domain(), function.name()));
    }
  }
  for (const auto& function : model.functions()) measure(function, 1, where);
  int64_t total = 0;
  for (const auto& node : model.graph().node()) {
    const ::onnx::FunctionProto* callee = find(node);
    total += callee ? costs_.at(callee).nodes : 1;
    if (total > kMaxNodes) {
      user_error("{}: its functions expand to more than {} nodes", where, kMaxNodes);
    }
  }
}

FunctionLibrary::Key FunctionLibrary::key_of(const ::onnx::NodeProto& node) {
  return {normal_domain(node.domain()), node.op_type(), node.overload()};
}

const ::onnx::FunctionProto* FunctionLibrary::find(const ::onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(key_of(node));
  return found == functions_.end() ? nullptr : found->second;
}

FunctionLibrary::Cost FunctionLibrary::measure(const ::onnx::FunctionProto& function, int depth,
                                               const std::string& where) {
  const std::string name = qualified_name(function.domain(), function.name());
  const auto known = costs_.find(&function);
  if (known != costs_.end() && known->second.open) {
    user_error("{}: the function {} calls itself", where, name);
  }
  if (known != costs_.end()) return known->second;
  if (depth > kMaxCallDepth) {
    user_error("{}: functions call each other more than {} deep, at {}", where, kMaxCallDepth,
               name);
  }
  costs_[&function] = Cost{};
  Cost cost;
  for (const auto& node : function.node()) {
    const ::onnx::FunctionProto* callee = find(node);
    const Cost inner = callee ? measure(*callee, depth + 1, where) : Cost{1, 0, false};
    // Saturates just above the bound.
    cost.nodes = std::min(cost.nodes + inner.nodes, kMaxNodes + 1);
    cost.depth = std::max(cost.depth, inner.depth + 1);
  }
  if (cost.depth > kMaxCallDepth) {
    user_error("{}: functions call each other more than {} deep, at {}", where, kMaxCallDepth,
               name);
  }
  cost.open = false;
  return costs_[&function] = cost;
}

}  // namespace redfuser::onnx
