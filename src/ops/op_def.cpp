#include "ops/op_def.h"

#include "base/error.h"
#include "base/integers.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/infer.h"
#include "ops/sizes.h"
#include "ops/tensor_element.h"

namespace redfuser::ops {
namespace {

template <typename T>
const T& as_kind(const NodeView& view, const std::string& attribute, const char* kind) {
  const ir::Attribute& stored = view.node().attributes.at(attribute);
  const T* typed = std::get_if<T>(&stored);
  if (!typed) view.fail(fmt::format("attribute {} is not {}", attribute, kind));
  return *typed;
}

bool is_present(const std::vector<ir::ValueId>& ids, int i) {
  return i >= 0 && i < static_cast<int>(ids.size()) && ids[i] != ir::kAbsent;
}

}  // namespace

bool NodeView::has_input(int input) const { return is_present(node_.inputs, input); }
bool NodeView::has_output(int output) const { return is_present(node_.outputs, output); }

const ir::Value& NodeView::input(int input) const {
  if (!has_input(input)) fail(fmt::format("input {} is missing", input));
  return graph_.values[node_.inputs[input]];
}

bool NodeView::has(const std::string& attribute) const {
  return node_.attributes.count(attribute) != 0;
}

int64_t NodeView::integer(const std::string& attribute, int64_t fallback) const {
  return has(attribute) ? as_kind<int64_t>(*this, attribute, "an integer") : fallback;
}

double NodeView::real(const std::string& attribute, double fallback) const {
  return has(attribute) ? as_kind<float>(*this, attribute, "a float") : fallback;
}

std::string NodeView::text(const std::string& attribute, const std::string& fallback) const {
  return has(attribute) ? as_kind<std::string>(*this, attribute, "a string") : fallback;
}

std::vector<int64_t> NodeView::integers(const std::string& attribute,
                                        std::vector<int64_t> fallback) const {
  if (!has(attribute)) return fallback;
  return as_kind<std::vector<int64_t>>(*this, attribute, "a list of integers");
}

const std::vector<ir::Expr>* NodeView::elements(int input) const {
  const ir::Value& value = this->input(input);
  return value.has_elements ? &value.elements : nullptr;
}

std::optional<std::vector<int64_t>> NodeView::constant_integers(int input) const {
  const ir::Value& value = this->input(input);
  std::vector<int64_t> result;
  if (value.is_constant() && !value.has_elements) {
    if (!is_integer(value.dtype)) return std::nullopt;
    for (int64_t i = 0; i < value.constant.size(); ++i) {
      result.push_back(tensor_element(pool(), value.constant, i)->integer);
    }
    return result;
  }
  if (!value.has_elements) return std::nullopt;
  for (ir::Expr element : value.elements) {
    if (!element->is_constant()) return std::nullopt;
    result.push_back(is_float(element->dtype) ? saturated<int64_t>(element->number)
                                              : element->integer);
  }
  return result;
}

std::vector<int64_t> NodeView::small_integers(const std::string& attribute,
                                              std::vector<int64_t> fallback) const {
  std::vector<int64_t> values = integers(attribute, std::move(fallback));
  for (const int64_t value : values) {
    if (value != static_cast<int32_t>(value)) fail(fmt::format("{} has {}", attribute, value));
  }
  return values;
}

int NodeView::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank) {
    fail(fmt::format("axis {} is out of range for rank {}", value, rank));
  }
  return static_cast<int>(value < 0 ? value + rank : value);
}

void NodeView::fail(const std::string& message) const {
  user_error("[{}] node \"{}\": {}", node_.op, node_.name, message);
}

void NodeView::fail_unknown(const std::string& message) const {
  needs_values("[{}] node \"{}\": {}", node_.op, node_.name, message);
}

void InferContext::set(int output, DType dtype, std::vector<ir::Expr> shape) {
  constexpr size_t kMaxRank = 64;  // numpy's limit
  if (!has_output(output)) return;
  if (shape.size() > kMaxRank) {
    fail(fmt::format("output {} has {} dimensions; at most {} are taken", output, shape.size(),
                     kMaxRank));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    RF_CHECK(shape[i] && shape[i]->dtype == DType::Int64, "[{}] output {} dimension {} is no size",
             node().op, output, i);
    if (shape[i]->has_read) shape[i] = fresh_size(fmt::format("{}.{}", output, i));
    if (auto size = constant_of(shape[i]); size && *size < 0) {
      fail(fmt::format("output {} has a negative size {} in dimension {}", output, *size, i));
    }
  }
  ir::Value& value = mutable_.values[node().outputs[output]];
  value.dtype = dtype;
  value.shape = std::move(shape);
  value.list = nullptr;
}

void InferContext::set_list(int output, DType dtype, ir::Expr count, ListFormRef form) {
  set(output, dtype, {count});
  if (has_output(output)) mutable_.values[node().outputs[output]].list = std::move(form);
}

ir::Expr InferContext::fresh_size(const std::string& hint) {
  const std::string& name = node().name.empty() ? node().op : node().name;
  return pool().fresh_symbol(fmt::format("{}.{}", name, hint));
}

void InferContext::require_equal(ir::Expr a, ir::Expr b, const std::string& what) {
  if (a == b) return;
  if (proved_less(pool(), a, b) || proved_less(pool(), b, a)) {
    fail(fmt::format("{}: {} and {} differ", what, to_string(pool(), a), to_string(pool(), b)));
  }
  add_check(a, b, what, false);
}

void InferContext::require_broadcast(ir::Expr a, ir::Expr b, const std::string& what) {
  if (a == b || a->is_constant(1)) return;
  if (a->is_constant() && b->is_constant()) {
    fail(fmt::format("{}: {} and {}", what, to_string(pool(), a), to_string(pool(), b)));
  }
  add_check(a, b, what, true);
}

void InferContext::require_at_most(ir::Expr a, ir::Expr b, const std::string& what) {
  if (proved_less_equal(pool(), a, b)) return;
  if (proved_less(pool(), b, a)) {
    fail(fmt::format("{}: {} and {}", what, to_string(pool(), a), to_string(pool(), b)));
  }
  add_check(max_of(pool(), a, b), b, what, false);
}

void InferContext::add_check(ir::Expr a, ir::Expr b, const std::string& what, bool broadcast) {
  for (const ir::SizeCheck& known : mutable_.size_checks) {
    const bool same = known.a == a && known.b == b;
    const bool mirrored = known.a == b && known.b == a && !broadcast;
    if (known.broadcast == broadcast && (same || mirrored)) return;
  }
  std::string where = fmt::format("[{}] node \"{}\": {}", node().op, node().name, what);
  mutable_.size_checks.push_back({a, b, std::move(where), broadcast});
}

void InferContext::choose_opaque() {
  ir::Node& node = mutable_.nodes[static_cast<size_t>(&this->node() - mutable_.nodes.data())];
  if (node.def->lower == nullptr) return;
  RF_CHECK(node.def->opaque != nullptr, "[{}] has no opaque form", node.op);
  node.def = node.def->opaque;
}

void InferContext::set_constant(int output, Tensor tensor) {
  if (has_output(output)) {
    redfuser::ops::set_constant(mutable_, node().outputs[output], std::move(tensor));
  }
}

ir::Expr LowerContext::read(int input, std::vector<ir::Expr> index) const {
  RF_CHECK(static_cast<int>(index.size()) == rank(input), "[{}] reads input {} of rank {} at {}",
           node().op, input, rank(input), index.size());
  return reader_(node().inputs[input], std::move(index));
}

ir::Expr LowerContext::loop_axis(int which, ir::Expr extent) const {
  return pool().shared_axis(fmt::format("l{}.{}", node().outputs[output_], which), extent);
}

}  // namespace redfuser::ops
