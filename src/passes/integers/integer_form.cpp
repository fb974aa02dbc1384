#include "passes/integers/integer_form.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/select/make_kernel.h"
#include "fuse/make_plan.h"
#include "ir/evaluate.h"
#include "ops/graph_editor.h"

namespace redfuser::passes {
namespace {

constexpr int64_t kUnknownSize = 64;

int64_t typical_size(ir::Expr size) {
  std::vector<int64_t> symbols;
  visit(size, [&](ir::Expr e) {
    const auto number = static_cast<size_t>(e->integer);
    if (e->op == ir::ExprOp::Symbol && number >= symbols.size()) symbols.resize(number + 1);
  });
  std::fill(symbols.begin(), symbols.end(), kUnknownSize);
  return evaluate_size(size, symbols);
}

// A graph of one contraction, with the sizes of another graph's values.
class TrialGraph {
 public:
  TrialGraph() { graph_->pool = std::make_shared<ir::ExprPool>(); }

  ir::ValueId like(const ir::Graph& from, ir::ValueId id) {
    if (id == ir::kAbsent) return id;
    const ir::Value& value = from.values[static_cast<size_t>(id)];
    const std::string name = fmt::format("v{}", graph_->values.size());
    if (value.is_constant()) return ops::add_constant(*graph_, name, value.constant);
    const ir::ValueId input = graph_->add_value(name, value.dtype);
    for (ir::Expr size : value.shape) {
      graph_->values.back().shape.push_back(graph_->pool->integer(typical_size(size)));
    }
    graph_->inputs.push_back(input);
    return input;
  }
  ir::ValueId add(const ir::Node& origin, const std::string& op, std::vector<ir::ValueId> inputs,
                  ir::Attributes attributes) {
    ir::Node node = origin;
    if (op != origin.op) node = ops::new_node_for(origin, op, {});
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    return ops::add_node(*graph_, std::move(node), fmt::format("v{}", graph_->values.size()));
  }
  ir::Graph& graph() { return *graph_; }

  // Microseconds.
  double time(ir::ValueId output) {
    graph_->outputs = {output};
    fuse::PlanOptions options;
    options.certify = false;
    const fuse::Plan plan = make_plan(graph_, options);
    double time = 0;
    for (const fuse::Step& step : plan.steps) {
      const auto kernel = cpu::make_kernel(*plan.graph, step);
      if (kernel != nullptr) time += kernel->estimate({}, 1);
    }
    return time;
  }

 private:
  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
};

}  // namespace

int64_t typical_count(const std::vector<ir::Expr>& shape) {
  int64_t count = 1;
  for (ir::Expr size : shape) count *= typical_size(size);
  return count;
}

LastNode write_nodes(ir::Graph& graph, const IntegerForm& form, const std::string& stem,
                     const AddNode& add) {
  const auto constant = [&](const char* part, const Tensor& tensor) {
    if (!tensor.defined()) return ir::kAbsent;
    return ops::add_constant(graph, fmt::format("{}/{}_{}", stem, part, graph.values.size()),
                             tensor);
  };
  std::vector<ir::ValueId> operands = {form.codes, constant("weight", form.weights),
                                       constant("zero", form.zero)};
  if (form.weight_zeros.defined()) operands.push_back(constant("zeros", form.weight_zeros));
  const ir::ValueId sum = add(form.op, std::move(operands), form.attributes);
  const ir::ValueId real = add("Cast", {sum}, {{"to", int64_t{1}}});
  const ir::ValueId scaled = add("Mul", {real, constant("weight_scale", form.weight_scale)}, {});
  const ir::ValueId scale = constant("scale", form.scale);
  if (!form.bias.defined()) return {"Mul", {scaled, scale}};
  return {"Add", {add("Mul", {scaled, scale}, {}), constant("bias", form.bias)}};
}

namespace {

bool is_faster_in_trials(const ir::Graph& graph, const ir::Node& node, const IntegerForm& form,
                         const ir::Node* reader) {
  TrialGraph floats, integers;
  const auto time = [&](TrialGraph& trial, ir::ValueId result) {
    if (reader == nullptr) return trial.time(result);
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : reader->inputs) {
      inputs.push_back(input == node.outputs[0] ? result : trial.like(graph, input));
    }
    return trial.time(trial.add(*reader, reader->op, inputs, reader->attributes));
  };
  RF_CHECK(form.floats != ir::kAbsent, "an integer form without the floats of its codes");
  const auto dequantised = [&]() {
    const ir::ValueId codes = floats.like(graph, form.codes);
    const ir::ValueId real = floats.add(node, "Cast", {codes}, {{"to", int64_t{1}}});
    const ir::ValueId scale = ops::add_constant(floats.graph(), "scale", form.scale);
    return floats.add(node, "Mul", {real, scale}, {});
  };
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId input : node.inputs) {
    inputs.push_back(input == form.floats ? dequantised() : floats.like(graph, input));
  }
  const double without = time(floats, floats.add(node, node.op, inputs, node.attributes));
  IntegerForm own = form;
  own.codes = integers.like(graph, form.codes);
  const auto add = [&](const std::string& op, std::vector<ir::ValueId> of, ir::Attributes with) {
    return integers.add(node, op, std::move(of), std::move(with));
  };
  const LastNode last = write_nodes(integers.graph(), own, "form", add);
  return time(integers, integers.add(node, last.op, last.inputs, {})) < without;
}

}  // namespace

bool is_faster(const ir::Graph& graph, const ir::Node& node, const IntegerForm& form,
               const ir::Node* reader) {
  try {
    return is_faster_in_trials(graph, node, form, reader);
  } catch (const UserError&) {
    return false;  // unknown sizes may be too small for the node
  }
}

}  // namespace redfuser::passes
