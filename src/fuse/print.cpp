#include <fmt/format.h>

#include "fuse/plan.h"

namespace redfuser::fuse {
namespace {

struct StepPrinter {
  const ir::Graph& graph;

  std::string text(ir::Expr e) const { return to_string(*graph.pool, e); }
  std::string element(ir::ValueId value, const std::vector<ir::Expr>& axes) const {
    std::string indices;
    for (ir::Expr axis : axes) indices += (indices.empty() ? "" : ",") + text(axis);
    return fmt::format("%{}[{}]", value, indices);
  }

  std::string operator()(const MapStep& step) const {
    std::string result = "map";
    for (const auto& output : step.outputs) {
      result += fmt::format(" {} = {}", element(output.value, step.axes), text(output.body));
    }
    return result;
  }
  std::string operator()(const ReduceStep& step) const {
    return fmt::format("reduce {} = {}", element(step.value, step.axes), text(step.body));
  }
  std::string operator()(const ProductStep& step) const {
    std::string result =
        fmt::format("product {} = {} with", element(step.value, step.axes), text(step.epilogue));
    for (size_t i = 0; i < step.b.size(); ++i) {
      result += fmt::format("{} product{} = sum_{} {}*{}", i > 0 ? "," : "",
                            step.b.size() > 1 ? std::to_string(i) : "", text(step.k),
                            factor(step.a, step.a_zero),
                            factor(step.b[i], step.of_integers() ? step.b_zeros[i] : nullptr));
    }
    return result;
  }
  std::string factor(ir::Expr read, ir::Expr zero) const {
    return zero ? fmt::format("({} - {})", text(read), text(zero)) : text(read);
  }
  std::string operator()(const CascadeStep& step) const {
    return fmt::format("cascade {}: {}", step.report, to_string(*graph.pool, step.streaming));
  }
  std::string operator()(const OpaqueStep& step) const {
    const ir::Node& node = graph.nodes[static_cast<size_t>(step.node)];
    std::string inputs;
    for (ir::ValueId input : node.inputs) {
      inputs +=
          (inputs.empty() ? "" : ", ") + (input == ir::kAbsent ? "_" : fmt::format("%{}", input));
    }
    const std::string kernel = fmt::format("kernel {}({})", node.op, inputs);
    if (!step.epilogue) return kernel;
    const OpaqueStep::Epilogue& e = *step.epilogue;
    return fmt::format("{} with {} = {}", kernel, element(e.value, e.axes), text(e.body));
  }
  std::string operator()(const AliasStep& step) const {
    return fmt::format("alias %{} = %{}", step.value, step.source);
  }
};

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    std::string line = std::visit(StepPrinter{*plan.graph}, step.kind);
    if (!line.empty() && line.back() == '\n') line.pop_back();
    text += fmt::format("{:4} {}  # {}\n", i, line, step.label);
  }
  return text;
}

}  // namespace redfuser::fuse
