#include "codegen/joined/joined_steps.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/joined/joined_select.h"
#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

class Finder {
 public:
  Finder(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
         const std::set<size_t>& on_host)
      : graph_(graph), plan_(plan), target_(target), on_host_(on_host) {}

  // The product that takes in the rows.
  std::optional<size_t> product_of(size_t rows) const {
    const fuse::Step& step = plan_.steps[rows];
    if (!std::holds_alternative<fuse::CascadeStep>(step.kind) || on_host_.count(rows)) {
      return std::nullopt;
    }
    if (!step.binds.empty()) return std::nullopt;
    std::set<ir::ValueId> touched;
    for (const auto* values : {&step.reads, &step.writes}) {
      for (const ir::ValueId value : *values) {
        if (!is_constant(value)) touched.insert(plan_.root(value));
      }
    }
    for (size_t i = rows + 1; i < plan_.steps.size(); ++i) {
      const fuse::Step& other = plan_.steps[i];
      if (std::holds_alternative<fuse::AliasStep>(other.kind)) continue;
      if (!touches(other, touched)) continue;
      const bool joined = joins(rows, i) && !may_overwrite(rows, i);
      return joined ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool is_constant(ir::ValueId value) const {
    return graph_.values[static_cast<size_t>(plan_.root(value))].is_constant();
  }

  bool touches(const fuse::Step& step, const std::set<ir::ValueId>& values) const {
    for (const auto* touched : {&step.reads, &step.writes}) {
      for (const ir::ValueId value : *touched) {
        if (values.count(plan_.root(value))) return true;
      }
    }
    return false;
  }

  bool joins(size_t rows, size_t number) const {
    const fuse::Step& step = plan_.steps[number];
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    if (product == nullptr || product->of_integers() || on_host_.count(number)) return false;
    if (!step.binds.empty() || target_.append_of(product->value) != nullptr) return false;
    const auto* read = lines_of(*product);
    if (read == nullptr || is_read_elsewhere(number, static_cast<ir::ValueId>((*read)->integer))) {
      return false;
    }
    return has_thin_rows(graph_, plan_, plan_.steps[rows], step, target_);
  }

  // Whether an output of the graph that is written after the rows' place in the plan may be in the
  // memory of an input that they read (runtime::may_write_in_place).
  bool may_overwrite(size_t rows, size_t product) const {
    for (const ir::ValueId read : plan_.steps[rows].reads) {
      const ir::ValueId input = plan_.root(read);
      if (std::find(graph_.inputs.begin(), graph_.inputs.end(), input) == graph_.inputs.end()) {
        continue;
      }
      for (size_t i = rows + 1; i <= product; ++i) {
        for (const ir::ValueId written : plan_.steps[i].writes) {
          if (is_output(plan_.root(written)) && may_be_alike(written, input)) return true;
        }
      }
    }
    return false;
  }

  bool is_output(ir::ValueId value) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](ir::ValueId output) { return plan_.root(output) == value; });
  }

  // Whether two values may have one type and the same sizes.
  bool may_be_alike(ir::ValueId a, ir::ValueId b) const {
    const ir::Value &x = graph_.values[static_cast<size_t>(a)],
                    &y = graph_.values[static_cast<size_t>(b)];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size()) return false;
    for (size_t i = 0; i < x.shape.size(); ++i) {
      const bool constant = x.shape[i]->is_constant() && y.shape[i]->is_constant();
      if (constant && x.shape[i] != y.shape[i]) return false;
    }
    return true;
  }

  static const ir::Expr* lines_of(const fuse::ProductStep& product) {
    const ir::Expr* read = &product.a;
    while ((*read)->op == ir::ExprOp::Cast) read = &(*read)->args[0];
    return (*read)->op == ir::ExprOp::Read ? read : nullptr;
  }

  bool is_read_elsewhere(size_t product, ir::ValueId lines) const {
    const std::set<ir::ValueId> root = {plan_.root(lines)};
    for (size_t i = product + 1; i < plan_.steps.size(); ++i) {
      if (std::holds_alternative<fuse::AliasStep>(plan_.steps[i].kind)) continue;
      if (touches(plan_.steps[i], root)) return true;
    }
    return false;
  }

  const ir::Graph& graph_;
  const fuse::Plan& plan_;
  const Target& target_;
  const std::set<size_t>& on_host_;
};

std::optional<size_t> find(const std::map<size_t, size_t>& map, size_t key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

JoinedSteps::JoinedSteps(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
                         const std::set<size_t>& on_host) {
  const Finder finder(graph, plan, target, on_host);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto product = finder.product_of(i);
    // A product has one thin matrix.
    if (product && rows_.emplace(*product, i).second) product_[i] = *product;
  }
}

std::optional<size_t> JoinedSteps::rows_of(size_t step) const { return find(rows_, step); }

std::optional<size_t> JoinedSteps::taken_by(size_t step) const { return find(product_, step); }

std::vector<size_t> JoinedSteps::done_by(size_t step) const {
  if (taken_by(step)) return {};
  if (const auto rows = rows_of(step)) return {*rows, step};
  return {step};
}

void JoinedSteps::separate(size_t step) {
  if (const auto rows = rows_of(step)) product_.erase(*rows);
  rows_.erase(step);
}

GpuStep JoinedSteps::generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                              const Target& target, const KnownSizes& sizes,
                              const LeftOut& left_out) const {
  if (taken_by(step)) {
    GpuStep result;
    result.pool = graph.pool;
    result.offers = {{kThinRowsStep, "", 0, "", false, ""}};
    return result;
  }
  const auto rows = rows_of(step);
  if (!rows) return codegen::generate(graph, plan.steps[step], target, sizes, left_out);
  return generate_joined(graph, plan, plan.steps[*rows], plan.steps[step], target, sizes, left_out);
}

GpuStep JoinedSteps::generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                              const Target& target, const KernelConfig& choice) const {
  RF_CHECK(!taken_by(step), "step {} has no choices", step);
  const auto rows = rows_of(step);
  if (!rows) return codegen::generate(graph, plan.steps[step], target, choice);
  return generate_joined(graph, plan, plan.steps[*rows], plan.steps[step], target, choice);
}

std::vector<Candidate> JoinedSteps::kernel_configs(const ir::Graph& graph, const fuse::Plan& plan,
                                                   size_t step, const Target& target,
                                                   std::span<const int64_t> symbols,
                                                   const LeftOut& left_out) const {
  if (taken_by(step)) return {};
  const auto rows = rows_of(step);
  if (!rows) return codegen::kernel_configs(graph, plan.steps[step], target, symbols, left_out);
  return joined_configs(graph, plan, plan.steps[*rows], plan.steps[step], target, symbols,
                        left_out);
}

std::vector<Offer> JoinedSteps::offers_at(const ir::Graph& graph, const fuse::Plan& plan,
                                          size_t step, const Target& target,
                                          const KnownSizes& sizes, const GpuStep& form) const {
  if (taken_by(step)) return form.offers;
  if (!rows_of(step)) {
    return codegen::offers_at(graph, plan.steps[step], target, sizes, form);
  }
  return generate(graph, plan, step, target, sizes, form.left_out).offers;
}

}  // namespace redfuser::codegen
