#include "onnx/import/batching.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::onnx {
namespace {

const ir::Value& value_of(const ir::Graph& graph, ir::ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

int64_t moved_axis(int64_t axis) { return axis >= 0 ? axis + 1 : axis; }

void move_axes(ir::Attributes& attributes) {
  for (auto& [name, attribute] : attributes) {
    if (name == "perm") {
      auto& perm = std::get<std::vector<int64_t>>(attribute);
      for (int64_t& from : perm) ++from;
      perm.insert(perm.begin(), 0);
    } else if (auto* axis = std::get_if<int64_t>(&attribute); axis != nullptr && name == "axis") {
      *axis = moved_axis(*axis);
    } else if (auto* axes = std::get_if<std::vector<int64_t>>(&attribute); axes && name == "axes") {
      for (int64_t& each : *axes) each = moved_axis(each);
    }
  }
}

bool has_axes(const ir::Node& node) {
  for (const char* name : {"axis", "axes", "perm"}) {
    if (node.attributes.count(name) > 0) return true;
  }
  return false;
}

}  // namespace

Batching::Batching(const ir::Graph& body, ir::Graph& graph, ir::Expr count,
                   std::function<std::string(const std::string&)> name_for)
    : body_(body), graph_(graph), count_(count), name_for_(std::move(name_for)) {}

void Batching::set(ir::ValueId of_body, ir::ValueId value, bool batched) {
  values_[of_body] = {value, batched};
}

Batching::Place Batching::place(ir::ValueId of_body) const {
  const auto found = values_.find(of_body);
  return found == values_.end() ? Place{of_body, false} : found->second;
}

bool Batching::add(const ir::Node& node) {
  const auto batched = [&](ir::ValueId id) { return id != ir::kAbsent && is_batched(id); };
  if (node.def->random) return false;
  if (std::none_of(node.inputs.begin(), node.inputs.end(), batched)) {
    add_unbatched(node);
    return true;
  }
  if (node.def->lower == nullptr) return false;
  first_ = static_cast<ir::NodeId>(graph_.nodes.size());
  for (const Form& form : forms(node)) {
    const size_t values = graph_.values.size(), checks = graph_.size_checks.size();
    try {
      if (add(node, form)) return true;
    } catch (const UserError&) {  // axes that the operator does not have
    }
    graph_.nodes.resize(static_cast<size_t>(first_));
    graph_.values.resize(values);
    graph_.size_checks.resize(checks);
  }
  return false;
}

void Batching::add_unbatched(const ir::Node& node) {
  ir::Node copy = node;
  for (ir::ValueId& id : copy.inputs) id = id == ir::kAbsent ? id : value(id);
  for (ir::ValueId& id : copy.outputs) {
    if (id == ir::kAbsent) continue;
    const ir::ValueId added = graph_.add_value(value_of(body_, id).name);
    set(id, added, false);
    id = added;
  }
  ops::infer_node(graph_, ops::append_node(graph_, std::move(copy)));
}

std::vector<Batching::Form> Batching::forms(const ir::Node& node) const {
  std::vector<Form> forms;
  for (const bool aligned : {true, false}) {
    for (const bool moved : {false, true}) {
      if (moved && !has_axes(node)) continue;
      forms.push_back({aligned, moved});
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == ir::kAbsent || is_batched(node.inputs[i])) continue;
        const Tensor& constant = value_of(body_, node.inputs[i]).constant;
        if (!constant.defined() || constant.dtype() != DType::Int64) continue;
        forms.push_back({aligned, moved, static_cast<int>(i)});
      }
    }
  }
  forms.push_back({false, false, -1, Form::All::Attribute});
  forms.push_back({false, false, -1, Form::All::Input});
  return forms;
}

// Of the results, which all inputs broadcast to in an elementwise operator.
int Batching::rank_of(const ir::Node& node) const {
  size_t rank = 0;
  for (const ir::ValueId id : node.outputs) {
    if (id != ir::kAbsent) rank = std::max(rank, value_of(body_, id).shape.size());
  }
  return static_cast<int>(rank);
}

ir::ValueId Batching::axes(std::vector<int64_t> values) {
  Tensor tensor(DType::Int64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return ops::add_constant(graph_, name_for_("axes"), std::move(tensor));
}

ir::ValueId Batching::aligned(ir::ValueId value, int64_t ones, const ir::Node& origin) {
  std::vector<int64_t> places(static_cast<size_t>(ones));
  std::iota(places.begin(), places.end(), 1);
  ir::Node node = ops::new_node_for(origin, "Unsqueeze", {value, axes(std::move(places))});
  return ops::add_node(graph_, std::move(node), name_for_(value_of(graph_, value).name));
}

std::optional<ir::Node> Batching::formed(const ir::Node& node, const Form& form) {
  ir::Node result = node;
  const int rank = rank_of(node);
  for (ir::ValueId& id : result.inputs) {
    if (id == ir::kAbsent) continue;
    const Place at = place(id);
    const auto ones = rank - static_cast<int64_t>(value_of(body_, id).shape.size());
    const bool widened = form.aligned && at.batched && ones > 0;
    id = widened ? aligned(at.value, ones, node) : at.value;
  }
  if (form.moved) move_axes(result.attributes);
  if (form.moved_input >= 0) {
    const Tensor& old =
        value_of(body_, node.inputs[static_cast<size_t>(form.moved_input)]).constant;
    Tensor tensor(DType::Int64, old.dims());
    std::transform(old.as<int64_t>(), old.as<int64_t>() + old.size(), tensor.as<int64_t>(),
                   moved_axis);
    result.inputs[static_cast<size_t>(form.moved_input)] =
        ops::add_constant(graph_, name_for_("axes"), std::move(tensor));
  }
  if (form.all == Form::All::No) return result;
  if (result.inputs.size() != 1 || has_axes(node)) return std::nullopt;
  std::vector<int64_t> all(value_of(body_, node.inputs[0]).shape.size());
  std::iota(all.begin(), all.end(), 1);
  if (form.all == Form::All::Attribute) {
    result.attributes["axes"] = std::move(all);
  } else {
    result.inputs.push_back(axes(std::move(all)));
  }
  return result;
}

bool Batching::add(const ir::Node& node, const Form& form) {
  std::optional<ir::Node> added = formed(node, form);
  if (!added) return false;
  for (ir::ValueId& id : added->outputs) {
    if (id != ir::kAbsent) id = graph_.add_value(value_of(body_, id).name);
  }
  ops::infer_node(graph_, ops::append_node(graph_, *added));
  if (!proved(node, *added)) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != ir::kAbsent) set(node.outputs[i], added->outputs[i], true);
  }
  return true;
}

bool Batching::proved(const ir::Node& node, const ir::Node& added) const {
  if (graph_.nodes.back().def->lower == nullptr) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != ir::kAbsent && !proved(node.outputs[i], added.outputs[i])) return false;
  }
  return true;
}

// Reads of batched values at [j...] in the body's expression become reads at [t, j...].
bool Batching::proved(ir::ValueId of_body, ir::ValueId added) const {
  const ir::Value& before = value_of(body_, of_body);
  const ir::Value& after = value_of(graph_, added);
  std::vector<ir::Expr> shape = before.shape;
  shape.insert(shape.begin(), count_);
  if (after.dtype != before.dtype || after.shape != shape) return false;
  ir::ExprPool& pool = *graph_.pool;
  std::vector<ir::Expr> index = ops::shared_axes(body_, of_body);
  const ir::Expr t = pool.shared_axis("batch", count_);
  ops::Lowering one(body_, [&](ir::ValueId id) { return id == of_body; });
  ops::Lowering all(graph_,
                    [&](ir::ValueId id) { return value_of(graph_, id).producer >= first_; });
  const std::function<ir::Expr(ir::Expr)> replace = [&](ir::Expr expr) -> ir::Expr {
    if (expr->op != ir::ExprOp::Read) return nullptr;
    const Place read = place(static_cast<ir::ValueId>(expr->integer));
    std::vector<ir::Expr> at;
    if (read.batched) at.push_back(t);
    for (const ir::Expr position : expr->args) at.push_back(pool.rewrite(position, replace));
    return all.element(read.value, std::move(at));
  };
  const ir::Expr wanted = pool.rewrite(one.element(of_body, index), replace);
  index.insert(index.begin(), t);
  return all.element(added, index) == wanted;
}

}  // namespace redfuser::onnx
