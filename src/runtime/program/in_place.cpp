#include "runtime/program/in_place.h"

#include <algorithm>
#include <map>

namespace redfuser {
namespace {

size_t index(ValueId id) { return static_cast<size_t>(id); }

// The value that owns the bytes of each alias.
std::map<ValueId, ValueId> alias_roots(const Plan& plan) {
  std::map<ValueId, ValueId> roots;
  for (const Step& step : plan.steps) {
    const auto* alias = std::get_if<AliasStep>(&step.kind);
    if (alias == nullptr) continue;
    const auto below = roots.find(alias->source);
    roots[alias->value] = below == roots.end() ? alias->source : below->second;
  }
  return roots;
}

class InPlace {
 public:
  InPlace(const CompiledProgram& program, ValueId input)
      : program_(program), roots_(alias_roots(program.plan)), input_(input) {}

  bool allows(ValueId output) const {
    const ValueId target = root(output);
    const std::vector<Step>& steps = program_.plan.steps;
    const auto writer = std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
      return std::find(step.writes.begin(), step.writes.end(), target) != step.writes.end() &&
             !std::holds_alternative<AliasStep>(step.kind);
    });
    if (writer == steps.end() || !reads_its_place(*writer, target)) return false;
    const bool read_later = std::any_of(writer + 1, steps.end(), [&](const Step& step) {
      return !std::holds_alternative<AliasStep>(step.kind) && reads(step);
    });
    const std::vector<ValueId>& outputs = program_.graph().outputs;
    return !read_later && std::none_of(outputs.begin(), outputs.end(),
                                       [&](ValueId id) { return root(id) == input_; });
  }

 private:
  ValueId root(ValueId id) const {
    const auto found = roots_.find(id);
    return found == roots_.end() ? id : found->second;
  }

  bool reads(const Step& step) const {
    return std::any_of(step.reads.begin(), step.reads.end(),
                       [&](ValueId id) { return root(id) == input_; });
  }

  bool reads_its_place(const Step& step, ValueId target) const {
    if (!reads(step)) return true;
    if (const auto* map = std::get_if<MapStep>(&step.kind)) return reads_its_place(*map, target);
    const auto* opaque = std::get_if<OpaqueStep>(&step.kind);
    if (opaque == nullptr) return false;
    const Node& node = program_.graph().nodes[static_cast<size_t>(opaque->node)];
    if (!node.op.starts_with("Scatter") || root(node.inputs[0]) != input_) return false;
    return std::none_of(node.inputs.begin() + 1, node.inputs.end(),
                        [&](ValueId id) { return root(id) == input_; });
  }

  bool reads_its_place(const MapStep& map, ValueId target) const {
    const auto& shape = program_.graph().values[index(target)].shape;
    if (program_.graph().values[index(input_)].shape != shape) return false;
    bool same = true;
    for (const MapStep::Output& output : map.outputs) {
      visit(output.body, [&](Expr read) {
        if (read->op != ExprOp::Read || root(static_cast<ValueId>(read->integer)) != input_) return;
        same = same && read->integer == input_ && same_place(read->args, map.axes);
      });
    }
    return same;
  }

  // A dimension of one element is read at 0.
  static bool same_place(const std::vector<Expr>& at, const std::vector<Expr>& axes) {
    if (at.size() != axes.size()) return false;
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] == axes[i]) continue;
      if (!axes[i]->extent()->is_constant(1) || !at[i]->is_constant(0)) return false;
    }
    return true;
  }

  const CompiledProgram& program_;
  const std::map<ValueId, ValueId> roots_;
  const ValueId input_;
};

}  // namespace

bool may_write_in_place(const CompiledProgram& program, ValueId output, ValueId input) {
  return InPlace(program, input).allows(output);
}

}  // namespace redfuser
