#include "onnx/import/unsupported.h"

#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/functions/schema_body.h"
#include "onnx/proto/attributes.h"
#include "ops/op_def.h"
#include "ops/registry.h"

namespace redfuser::onnx {
namespace {

constexpr size_t kShownNodes = 5;

class Survey {
 public:
  Survey(const FunctionLibrary& functions, const std::string& where)
      : functions_(functions), where_(where) {}

  void add(const ::onnx::NodeProto& node, int index, const Opsets& opsets) {
    for (const std::string& missing : missing_in(node, opsets)) {
      found_[missing].push_back(node_name(node, index));
    }
  }

  // The unsupported operators that a node needs, as a list; empty if there are none.
  std::string list(const ::onnx::NodeProto& node, const Opsets& opsets) {
    return fmt::format("{}", fmt::join(missing_in(node, opsets), "; "));
  }

  void report() const {
    if (found_.empty()) return;
    std::string list;
    for (const auto& [op, nodes] : found_) {
      list += fmt::format("{}{} ({}: ", list.empty() ? "" : "; ", op, nodes.size());
      for (size_t i = 0; i < std::min(nodes.size(), kShownNodes); ++i) {
        list += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", nodes[i]);
      }
      list += nodes.size() > kShownNodes ? ", ...)" : ")";
    }
    throw UnsupportedOperator(fmt::format("{}: {} operator{} not supported: {}", where_,
                                          found_.size(), found_.size() == 1 ? " is" : "s are",
                                          list));
  }

 private:
  using Missing = std::set<std::string>;

  static std::string describe(const ::onnx::NodeProto& node, const Opsets& opsets) {
    const auto version = opsets.find(normal_domain(node.domain()));
    const std::string name = qualified_name(node.domain(), node.op_type());
    if (version == opsets.end()) return name + " of an operator set that is not imported";
    std::string text = fmt::format("{} of opset {}", name, version->second);
    if (name == "ai.onnx.ml.CastMap" || name == "ai.onnx.ml.DictVectorizer") {
      text += ", whose input is a map: only tensors are supported";
    }
    return text;
  }

  // The names of the unsupported operators that this node needs.
  Missing missing_in(const ::onnx::NodeProto& node, const Opsets& opsets) {
    if (const Missing missing = missing_in_subgraphs(node, opsets); !missing.empty()) {
      return missing;
    }
    for (const auto& attribute : node.attribute()) {
      if (!attribute.has_g() && is_unsupported(attribute)) {
        return {fmt::format("{} with the attribute {}", describe(node, opsets), attribute.name())};
      }
    }
    if (const ::onnx::FunctionProto* callee = functions_.find(node)) return missing_in(*callee);
    const std::string domain = normal_domain(node.domain());
    const auto version = opsets.find(domain);
    if (version == opsets.end()) return {describe(node, opsets)};
    if (domain.empty() && node.op_type() == "Constant") return {};
    if (domain.empty() && is_control_flow(node.op_type())) return {};
    if (ops::find_op(domain, node.op_type(), version->second)) return {};
    if (!has_body(node, opsets)) return {describe(node, opsets)};
    if (!has_fixed_body(node, opsets)) return {};
    return missing_in_body(node, opsets, version->second);
  }

  Missing missing_in_subgraphs(const ::onnx::NodeProto& node, const Opsets& opsets) {
    Missing missing;
    for (const auto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      for (const auto& inner : attribute.g().node()) missing.merge(missing_in(inner, opsets));
    }
    return missing;
  }

  Missing missing_in(const ::onnx::FunctionProto& function) {
    const auto known = local_.find(&function);
    if (known != local_.end()) return known->second;
    // A function that calls itself, which importing refuses, adds nothing.
    local_[&function] = {};
    Missing missing = missing_in_nodes(function, opsets_of(function));
    return local_[&function] = std::move(missing);
  }

  Missing missing_in_body(const ::onnx::NodeProto& node, const Opsets& opsets, int version) {
    const auto key = std::make_pair(qualified_name(node.domain(), node.op_type()), version);
    const auto known = bodies_.find(key);
    if (known != bodies_.end()) return known->second;
    bodies_[key] = {};
    const FunctionBody body = body_of(node, opsets, {}, where_);
    Missing missing;
    for (const auto& inner : missing_in_nodes(*body.function, body.opsets)) {
      missing.insert(fmt::format("{} (its body uses {})", describe(node, opsets), inner));
    }
    return bodies_[key] = std::move(missing);
  }

  Missing missing_in_nodes(const ::onnx::FunctionProto& function, const Opsets& opsets) {
    Missing missing;
    for (const auto& node : function.node()) missing.merge(missing_in(node, opsets));
    return missing;
  }

  const FunctionLibrary& functions_;
  const std::string& where_;
  std::map<const ::onnx::FunctionProto*, Missing> local_;
  std::map<std::pair<std::string, int>, Missing> bodies_;
  std::map<std::string, std::vector<std::string>> found_;
};

}  // namespace

void check_supported(const ::onnx::ModelProto& model, const std::vector<int>& order,
                     const FunctionLibrary& functions, const std::string& where) {
  const Opsets opsets = opsets_of(model);
  Survey survey(functions, where);
  std::vector<int> nodes = order;
  std::sort(nodes.begin(), nodes.end());
  for (const int index : nodes) survey.add(model.graph().node(index), index, opsets);
  survey.report();
}

std::vector<std::string> unsupported_nodes(const ::onnx::ModelProto& model,
                                           const FunctionLibrary& functions,
                                           const std::string& where) {
  const Opsets opsets = opsets_of(model);
  Survey survey(functions, where);
  std::vector<std::string> lists;
  for (const auto& node : model.graph().node()) {
    lists.push_back(survey.list(node, opsets));
    if (!lists.back().empty()) lists.back() += " is not supported";
  }
  return lists;
}

}  // namespace redfuser::onnx
