// Nodes that cannot be imported, and why.
#include <onnx/onnx_pb.h>

#include <map>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/import/importer.h"
#include "onnx/import/node_sets.h"
#include "onnx/import/unsupported.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"

namespace redfuser::onnx {
namespace {

// Of what a file declares, nodes are left out that read what cannot be used.
template <typename Action>
void attempt(const Action& action) {
  try {
    action();
  } catch (const UserError&) {
  }
}

}  // namespace

std::vector<std::string> Importer::refusals() {
  const ::onnx::GraphProto& main = model_->graph();
  Scope scope;
  scope.opsets = opsets_of(*model_);
  scope.owner = model_;
  reserve_names();
  for (const auto& tensor : main.initializer()) {
    attempt([&] {
      scope.values[tensor.name()] = ops::add_constant(graph_, tensor.name(), initial_value(tensor));
    });
  }
  for (const ::onnx::ValueInfoProto* input : free_inputs(main)) {
    attempt([&] { scope.values[input->name()] = add_declared_input(*input); });
  }
  std::vector<std::string> reasons = unsupported_nodes(*model_, functions_, path_);
  const ValueTypeProtos types = declared_types(main);
  for (const int index : order_of_all(main, path_)) {
    const ::onnx::NodeProto& node = main.node(index);
    std::string& reason = reasons[static_cast<size_t>(index)];
    if (reason.empty()) {
      const Mark before = mark();
      try {
        add_node(node, scope, {node_name(node, index), index});
      } catch (const UserError& error) {
        reason = error.what();
        roll_back(before);
      }
    }
    if (reason.empty()) continue;
    for (const std::string& output : node.output()) {
      scope.values.erase(output);
      const auto declared = types.find(output);
      if (declared == types.end()) continue;
      attempt([&] { scope.values[output] = add_declared_input(*declared->second); });
    }
  }
  return reasons;
}

}  // namespace redfuser::onnx
